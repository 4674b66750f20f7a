"""The convolutional rivals: their sizes, and what they are compared with."""

import keras
import keras_hub
import numpy as np
import pytest
from keras.src.applications import densenet

from audio_tf import layers, models

# Weights that are trained with 200 classes. The FSD50K paper has 0.27, 0.96,
# 11.3 and 12.5 million: that of CRNN is near, that of DenseNet-121 is not.
COUNTS = {
    "vgg_like": 265_992,
    "crnn": 973_000,
    "resnet18": 11_272_840,
    "densenet121": 7_152_584,
}


def trained_weights(model):
    return sum(np.prod(weight.shape) for weight in model.trainable_weights)


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(
            size, marks=[pytest.mark.slow] if COUNTS[size] > 5e6 else []
        )
        for size in COUNTS
    ],
)
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


def before_the_bands(model, images):
    """What a backbone makes of images before it pools over bands."""
    for stage in model.stages[:-1]:
        images = stage(images)
    return np.asarray(images)


def drawn(shape, path, rng):
    """A weight as if it had been trained, of a size that keeps activations."""
    if "variance" in path:
        return rng.uniform(0.5, 1.5, shape)
    spread = np.prod(shape[:-1]) ** -0.5 if len(shape) > 1 else 0.3
    return spread * rng.standard_normal(shape) + float("gamma" in path)


def test_resnet_is_that_of_kerashub(rng):
    """Where nothing is padded, and frames and bands are whole strides."""
    reference = keras_hub.models.ResNetBackbone(
        input_conv_filters=[64],
        input_conv_kernel_sizes=[7],
        stackwise_num_filters=[64, 5],
        stackwise_num_blocks=[2, 2],
        stackwise_num_strides=[1, 2],
        block_type="basic_block",
        image_shape=(32, 16, 1),
    )
    mine = models.ResNet18Backbone(
        filters=(64, 5), depth=2, num_mel_bins=16, sample_rate_hz=1_100
    )
    stem, *blocks = mine.stages[:-1]
    for weight in reference.weights:
        weight.assign(drawn(weight.shape, weight.path, rng))

    def copy(mine, number, name):
        found = {
            part: reference.get_layer(f"{name}{number}_{part}")
            for part in ("conv", "bn")
        }
        mine.convolution.set_weights(found["conv"].get_weights())
        mine.norm.set_weights(found["bn"].get_weights())

    copy(stem.convolutions[0], 1, "conv")
    for index, block in enumerate(blocks):
        name = f"stack{index // 2}_block{index % 2}_"
        copy(block.first, 1, name)
        copy(block.second, 2, name)
        if block.shortcut is not None:
            copy(block.shortcut, 0, name)
    x = rng.standard_normal((2, 32, 16, 1)).astype("float32")
    np.testing.assert_allclose(
        before_the_bands(mine, x), reference(x), rtol=1e-4, atol=1e-4
    )


@pytest.mark.one_backend
def test_densenet_is_that_of_keras(rng):
    """Where nothing is padded, and frames and bands are whole strides."""
    reference = densenet.DenseNet(
        [1, 2, 1, 1], include_top=False, weights=None, input_shape=(64, 32, 1)
    )
    mine = models.DenseNet121Backbone(
        depths=(1, 2, 1, 1), num_mel_bins=32, sample_rate_hz=1_100
    )
    kinds = (keras.layers.Conv2D, keras.layers.BatchNormalization)
    theirs = [each for each in reference.layers if isinstance(each, kinds)]
    stem, *blocks, norm, _ = mine.stages
    ours = [stem.convolutions[0].convolution, stem.convolutions[0].norm]
    for stage in blocks:
        if isinstance(stage, layers.DenseTransition):
            ours += [stage.norm.norm, stage.convolution]
            continue
        for first, narrow, wide in zip(
            stage.norms, stage.narrow, stage.wide, strict=True
        ):
            ours += [first.norm, narrow.convolution, narrow.norm, wide]
    ours.append(norm.norm)
    for one, other in zip(ours, theirs, strict=True):
        for weight in other.weights:
            weight.assign(drawn(weight.shape, weight.path, rng))
        one.set_weights(other.get_weights())
    x = rng.standard_normal((2, 64, 32, 1)).astype("float32")
    np.testing.assert_allclose(
        before_the_bands(mine, x), reference(x), rtol=1e-4, atol=1e-4
    )


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


LIST = "must be a list of positive integers"
SIZE = "must be a positive integer"
NUMBER = "must be a positive number"
WRONG = {
    models.CRNNBackbone: {
        "filters": (SIZE, [0, -1, "4", [4], 2.5, True, None]),
        "kernel_size": ("must be odd|" + SIZE, [0, 4, "3", None]),
        "pools": (
            "must be a list of pairs of positive integers",
            [2, "ab", None, [], [2, 5], [(2,)], [(2, 0)], [(2, 2.5)]],
        ),
        "units": (SIZE, [0, -1, "4", None, [4]]),
        "num_mel_bins": (SIZE, [0, -1, "96", None, 9.5]),
        "window_s": (NUMBER, [0, -1, "0.03", None, [1], float("nan"), True]),
        "hop_s": (NUMBER, [0, -1, "0.01", None, [1], float("inf"), True]),
        "sample_rate_hz": (SIZE, [0, -1, "16000", None, [1], True]),
        "trainable": ("must be True or False", ["x", None, 5]),
    },
    models.VGGLikeBackbone: {
        "filters": (LIST, [5, "abc", None, [], [0], [4, -1], [4, "b"], {4: 5}]),
        "depths": (LIST, [5, "abc", None, [], [0], [1, -1], [1, 1.5]]),
    },
    models.ResNet18Backbone: {
        "filters": (LIST, [5, "abc", None, [], [0], [4, -1], [4, "b"], {4: 5}]),
        "depth": (SIZE, [0, -1, "2", None, 1.5, [1]]),
    },
    models.DenseNet121Backbone: {
        "depths": (LIST, [5, "abc", None, [], [0], [1, -1], [1, 1.5]]),
        "growth": (SIZE, [0, -1, "2", None, 1.5, [1]]),
        "stem_filters": (SIZE, [0, -1, "2", None, 1.5, [1]]),
    },
    models.MelResNetBackbone: {
        "filters": (LIST, [5, "abc", None, [], [0], [4, -1], [4, "b"]]),
        "window_s": (NUMBER, [0, "0.03", None]),
        "hop_s": (NUMBER, [0, "0.01", None]),
    },
    layers.ConvolutionBlock: {
        "pool_size": ("must be a pair of positive", [2, "22", (2,), (2, 0)]),
        "pool_strides": ("must be a pair of positive", [0, (), 2, (2, 2.5)]),
        "use_bias": ("must be True or False", ["no", 1, None]),
    },
}


@pytest.mark.parametrize(
    "family, argument",
    [(family, argument) for family in WRONG for argument in WRONG[family]],
)
def test_a_wrong_argument_is_named_with_what_was_received(family, argument):
    meant, values = WRONG[family][argument]
    needed = {"filters": 4} if family is layers.ConvolutionBlock else {}
    for value in values:
        with pytest.raises(ValueError, match=f"^`{argument}` .*{meant}") as e:
            family(**{**needed, argument: value})
        assert str(e.value).endswith(f"Received: {argument}={value!r}")


def test_a_single_augmentation_is_no_list():
    one = layers.RandomGain()
    for wrong in (None, 5, one):
        for family in (models.CRNNBackbone, models.MelResNetBackbone):
            with pytest.raises(
                TypeError, match="`augmentation` must be a list"
            ):
                family(augmentation=wrong)
