"""The convolutional rivals: their sizes, and what they are compared with."""

import numpy as np
import pytest

from audio_tf import layers, models

# Weights that are trained with 200 classes. Those of VGG-like, CRNN and
# ResNet-18 are the FSD50K paper's 0.27 M, 0.96 M and 11.3 M.
COUNTS = {"vgg_like": 265_992}


def trained_weights(model):
    return sum(np.prod(weight.shape) for weight in model.trainable_weights)


@pytest.mark.parametrize("size", COUNTS)
def test_parameters_of_the_papers_models(size):
    model = models.AudioClassifier.from_preset(size, num_classes=200)
    assert trained_weights(model) == COUNTS[size]
    # A second at 22.05 kHz, chunks of which are the classifier's default.
    assert model.chunk_s == 1.0 and model.sample_rate_hz == 22_050
    assert model.backbone.frame_size == 220


def test_the_vgg_like_head_is_both_global_poolings(rng):
    """The backbone's halves and the pooling make them of all positions."""
    backbone = models.VGGLikeBackbone(
        filters=(3, 5), depths=(1, 1), num_mel_bins=11, sample_rate_hz=1_100
    )
    model = models.AudioClassifier(backbone, num_classes=2)
    x = rng.standard_normal((2, 131)).astype("float32")
    images, _ = backbone.patches(x)
    for block in backbone.stages[:-1]:
        images = block(images if images.ndim == 4 else images[..., None])
    images = np.asarray(images)
    both = [images.max(axis=(1, 2)), images.mean(axis=(1, 2))]
    pooled = model.pooler(backbone(x)["sequence_output"])
    np.testing.assert_allclose(pooled, np.concatenate(both, axis=-1), atol=1e-5)
    hidden = np.maximum(model.hidden_dense(pooled), 0.0)
    assert hidden.shape == (2, 256)
    scores = model.output_activation(model.output_dense(hidden))
    np.testing.assert_allclose(model(x), scores, atol=1e-6)


def test_what_a_rival_has_not_is_refused():
    for wrong, error, message in (
        ({"filters": (3,)}, ValueError, "one of `filters` and of `depths`"),
        ({"num_mel_bins": 5}, ValueError, "Too few bands"),
        (
            {"augmentation": [layers.VocalTractPerturbation()]},
            ValueError,
            "augments the spectrum",
        ),
        ({"attention": "full"}, TypeError, "no argument 'attention'"),
    ):
        with pytest.raises(error, match=message):
            models.VGGLikeBackbone(**wrong)
