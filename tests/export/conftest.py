import pytest


@pytest.fixture
def scores_alone(monkeypatch):
    """Exports have one signature, for tests that do not look at the others."""
    from audio_tf.export import signatures

    endpoints = signatures.endpoints

    def first(model, max_clip_s):
        name = "serving_default"
        return {name: endpoints(model, max_clip_s)[name]}

    monkeypatch.setattr(signatures, "endpoints", first)


@pytest.fixture
def head_alone(monkeypatch):
    """Exports score loudness, for tests of what is written and not of scores.

    To trace a backbone takes most of an export.
    """
    import keras
    import tensorflow as tf

    from audio_tf.export import signatures

    def head(model, max_clip_s):
        dim = model.output_dense.kernel.shape[0]

        def serve(waveform, lengths=tf.constant([-1])):
            loudness = keras.ops.mean(waveform, axis=1, keepdims=True)
            # What no signature reads would be refused.
            for weight in model.weights:
                loudness += 0.0 * keras.ops.sum(weight)
            shift = tf.cast(tf.reduce_max(lengths), tf.float32)
            x = keras.ops.tile(loudness + shift, (1, dim))
            return {"scores": model.output_dense(x)}

        return {
            "serving_default": (
                serve,
                [
                    tf.TensorSpec((None, None), tf.float32, name="waveform"),
                    tf.TensorSpec((None,), tf.int32, name="lengths"),
                ],
            )
        }

    monkeypatch.setattr(signatures, "endpoints", head)
