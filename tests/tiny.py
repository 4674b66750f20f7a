"""Models of a few weights, for tests of everything but accuracy."""

from audio_tf.models import AudioAlbertBackbone, AudioTransformerBackbone

RATE_HZ = 1100
# One block, as flags and configs take it.
SIZES = {
    "num_layers": 1,
    "num_heads": 2,
    "key_dim": 4,
    "hidden_dim": 8,
    "intermediate_dims": [8],
}

# In place of `keras.Model.run_eagerly`, for whole runs, whose models a test
# does not get hold of.
ALWAYS_EAGER = property(lambda model: True, lambda model, value: None)


def eager(model):
    """Makes `fit` and `evaluate` run without a graph; to trace one costs 7 s.

    For tests of what a step does; those of graphs leave the model as it is.
    """
    model.run_eagerly = True
    model.jit_compile = False
    return model


def backbone(**kwargs):
    """One small block on windows of 10 ms."""
    return AudioTransformerBackbone(
        **{
            "num_layers": 1,
            "num_heads": 2,
            "key_dim": 5,
            "hidden_dim": 12,
            "intermediate_dims": (7,),
            "frontend_filters": 16,
            "window_s": 0.01,
            "sample_rate_hz": RATE_HZ,
            **kwargs,
        }
    )


def albert(**kwargs):
    """One small block on 13 features."""
    return AudioAlbertBackbone(
        **{
            "num_layers": 1,
            "num_heads": 2,
            "key_dim": 4,
            "hidden_dim": 8,
            "intermediate_dims": (8,),
            "feature_dim": 13,
            **kwargs,
        }
    )
