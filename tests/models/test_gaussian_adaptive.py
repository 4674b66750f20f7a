"""The Gaussian adaptive transformer, and its decoder of arrays."""

import keras
import numpy as np
import pytest
import tiny
from backbone_cases import speech_encoder, transformer
from keras import ops
from scipy import signal

from audio_tf import layers, models
from audio_tf.models import gaussian_adaptive_decoder as decoders
from audio_tf.models import preset_tasks

LAYERS, DIM, CLASSES = 6, 8, 3
LABELS = ["dry", "lively", "moved"]


def numpy(x):
    return ops.convert_to_numpy(x)


def decoder(module="gaam_v1", **kwargs):
    return models.GaussianAdaptiveDecoder(
        **{
            "num_layers": LAYERS,
            "dim": DIM,
            "num_classes": CLASSES,
            "module": module,
            "filters": 5,
            **kwargs,
        }
    )


def count(layers):
    return sum(layer.count_params() for layer in layers)


@pytest.mark.parametrize(
    ("module", "size", "attention", "others"),
    [
        # Table 1: WavLM-Large and BEiT-Large, then Llama2-13B. The second
        # count is of the authors' convolutions, and of 4 classes.
        ("gaam_v1", (24, 1024), 16_384, 221_720 + 98_308),
        ("gaam_v2", (24, 1024), 2_048, 221_720 + 98_308),
        ("gqgaam", (24, 1024), 985_088 + 16_384, 221_720 + 49_156),
        ("gaam_v1", (40, 5120), 81_920, None),
        ("gaam_v2", (40, 5120), 10_240, None),
        ("gqgaam", (40, 5120), 3_082_240 + 81_920, None),
        ("mha", (24, 1024), 4 * (1024 * 1024 + 1024), None),
        ("gct", (24, 1024), 2_048, None),
    ],
)
def test_counts_of_table_1(module, size, attention, others):
    filters = {} if others else {"filters": 1}
    model = models.GaussianAdaptiveDecoder(
        *size, num_classes=4, module=module, compile=False, **filters
    )
    assert model.attention_layer.count_params() == attention
    if others:
        assert model.count_params() == attention + others
    learnt = sum(
        np.prod(w.shape) for w in model.attention_layer.trainable_weights
    )
    assert learnt == (0 if module == "gct" else attention)


@pytest.mark.parametrize(
    ("layers", "heads"), [(24, 8), (40, 8), (12, 4), (6, 2), (5, 1), (1, 1)]
)
def test_heads_have_three_layers_at_least(layers, heads):
    model = decoder(num_layers=layers, filters=1, compile=False)
    assert model.attention_layer.num_heads == heads


def test_it_is_attention_two_convolutions_and_a_dense_layer(
    channels_first, rng
):
    """With layers as channels, and the features in rows and columns.

    Where Keras has channels first, too.
    """
    model = decoder("gaam_v2", dim=12)
    for weight in model.weights:
        weight.assign(rng.normal(scale=0.3, size=weight.shape) + 0.3)
    x = rng.standard_normal((2, LAYERS, 12)).astype("float32")
    (first, first_bias), (second, second_bias), (last, last_bias) = (
        model.get_layer(name).get_weights()
        for name in ("conv_1", "conv_2", "predictions")
    )
    expected = []
    for clip in numpy(model.attention_layer(x)):
        planes = clip.reshape(LAYERS, 3, 4)
        for kernel, bias in ((first, first_bias), (second, second_bias)):
            planes = np.stack(
                [
                    bias[out]
                    + sum(
                        signal.correlate2d(
                            plane, kernel[:, :, place, out], "same"
                        )
                        for place, plane in enumerate(planes)
                    )
                    for out in range(kernel.shape[-1])
                ]
            )
            planes = np.maximum(planes, 0.0)
        flat = np.moveaxis(planes, 0, -1).reshape(-1)
        logits = flat @ last + last_bias
        expected.append(np.exp(logits - logits.max()))
    expected = np.stack(expected)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(numpy(model(x)), expected, atol=1e-5)


def test_grids_are_the_authors():
    assert decoders.grid_of(1024) == (32, 32)
    assert decoders.grid_of(5120) == (64, 80)
    assert decoders.grid_of(512, 8) == (8, 64)
    assert decoders.grid_of(13) == (1, 13)
    with pytest.raises(ValueError, match=r"hold the 8 .* grid=\(3, 2\)"):
        decoder(grid=(3, 2))


SLOW = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in models.ATTENTION_MODULES
    if name != "gqgaam"
]


@pytest.mark.one_backend
@pytest.mark.parametrize("module", ["gqgaam", *SLOW])
def test_every_module_trains_and_comes_back(module, rng, tmp_path):
    model = tiny.eager(decoder(module))
    x = rng.standard_normal((4, LAYERS, DIM)).astype("float32")
    before = model.get_weights()
    model.fit(x, np.eye(CLASSES)[[0, 1, 2, 0]], verbose=0)
    fixed = {id(w) for w in model.non_trainable_weights}
    for weight, old in zip(model.weights, before, strict=True):
        moved = np.abs(numpy(weight) - old).max()
        # The softmax of attention does not see a bias of its keys.
        if not weight.path.endswith("key/bias"):
            assert (moved > 0) != (id(weight) in fixed) or model.module == (
                "mha_batch_norm"
            ), weight.path
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    np.testing.assert_allclose(numpy(again(x)), numpy(model(x)), atol=1e-6)
    # A clip's scores do not depend on the others of its batch.
    np.testing.assert_allclose(
        numpy(model(x[:1])), numpy(model(x))[:1], atol=1e-6
    )


@pytest.mark.parametrize("module", ["gaam_v1", "gqgaam"])
def test_an_int8_decoder_loads_again(module, rng, tmp_path):
    model, x = decoder(module), rng.normal(size=(2, LAYERS, DIM))
    x = x.astype("float32")
    model.quantize("int8")
    expected, path = numpy(model(x)), tmp_path / "decoder.keras"
    for _ in range(2):
        model.save(path)
        model = keras.saving.load_model(path)
        assert model.get_layer("predictions").quantization_mode == "int8"
        assert model.get_layer("conv_1").quantization_mode is None
        np.testing.assert_array_equal(model(x), expected)


def test_a_frozen_decoder_drops_nothing_out(rng):
    model = decoder(dropout=0.5)
    x = rng.standard_normal((4, LAYERS, DIM)).astype("float32")
    expected = numpy(model(x, training=False))
    assert np.abs(numpy(model(x, training=True)) - expected).max() > 0.01
    model = decoder(dropout=0.5, trainable=False)
    expected = numpy(model(x, training=False))
    np.testing.assert_array_equal(numpy(model(x, training=True)), expected)


@pytest.mark.parametrize("alone", [True, False])
def test_half_precision_of_the_layers_alone_scales_the_loss(alone, rng):
    """The global policy stays as it is; slopes of 1e-8 are none in float16."""
    model = decoder(head_dtype="mixed_float16")
    if not alone:
        encoder = transformer(dtype="mixed_float16")
        model = models.GaussianAdaptiveTransformer(
            encoder, num_classes=CLASSES, filters=4, chunk_s=0.25
        ).decoder
    model.compile(
        keras.optimizers.SGD(1e7),
        lambda y, scores: 1e-7 * ops.mean(ops.square(scores - y), axis=-1),
        run_eagerly=True,
    )
    before = model.get_weights()[-1]
    x = rng.standard_normal((3, *model.input_shape[1:])).astype("float32")
    model.train_on_batch(x, np.eye(CLASSES)[[0, 0, 0]])
    assert np.abs(model.get_weights()[-1] - before).min() > 1e-3


def test_what_does_not_decay_does_not_once_it_is_loaded(tmp_path):
    model = tiny.eager(decoder("gaam_v1"))
    optimizer = decoders.make_optimizer(0.1, weight_decay=0.5)
    model.compile(optimizer, decoders.make_loss())
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    variables = again.trainable_variables
    before = [numpy(variable) for variable in variables]
    # Without a gradient, the decay alone moves a weight.
    again.optimizer.apply([ops.zeros(v.shape) for v in variables], variables)
    kept = []
    for variable, old in zip(variables, before, strict=True):
        share = 0.95 if variable.name == "kernel" else 1.0
        np.testing.assert_allclose(numpy(variable), share * old, 1e-6)
        kept.append(share == 1.0 and np.any(old))
    # A bias begins at 0, where no decay shows; the variances do not.
    assert any(kept)


def test_maps_are_those_of_gaussian_modules(rng):
    x = rng.standard_normal((2, LAYERS, DIM)).astype("float32")
    weights = decoder().gaussian_map(x)
    assert weights.shape == x.shape and (0 < weights).all()
    one = x[:, :3]
    y = (one - one.mean(1, keepdims=True)) ** 2
    y = y / (one.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(weights[:, :3], np.exp(-y / 4), atol=1e-5)
    with pytest.raises(ValueError, match="'gct'.*Received: module='mha'"):
        decoder("mha").gaussian_map(x)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"module": "gam_v1"}, ValueError, "did you mean 'gaam_v1'"),
        ({"num_heads": 5}, ValueError, "must divide axis 1"),
        ({"module": "mha", "num_heads": 3}, ValueError, "num_heads=3, dim=8"),
        ({"attention_kwargs": {"variance": 1}}, TypeError, "variant"),
        (
            {"num_heads": 2, "attention_kwargs": {"num_heads": 3}},
            ValueError,
            "not say the same. Received: num_heads=2",
        ),
        (
            {"module": "mha", "attention_kwargs": {"num_heads": 3}},
            ValueError,
            "num_heads=3, dim=8",
        ),
        ({"filter": 5}, TypeError, "did you mean 'filters'"),
        ({"num_layers": 0}, ValueError, "num_layers=0"),
        ({"grid": (8,)}, ValueError, "`grid` must be a pair"),
        ({"compile": "no"}, ValueError, "`compile` must be True"),
    ],
)
def test_mistakes_are_named(kwargs, error, message):
    with pytest.raises(error, match=message):
        decoder(**kwargs)


@pytest.fixture(scope="module")
def encoder():
    return speech_encoder(num_layers=3)


@pytest.fixture(scope="module")
def model(encoder):
    """Of layers 0 and 2, with weights of some size."""
    made = models.GaussianAdaptiveTransformer(
        encoder, labels=LABELS, layers=[0, 2], filters=4, chunk_s=0.25
    )
    rng = np.random.default_rng(4)
    for weight in made.decoder.weights:
        weight.assign(rng.normal(scale=0.3, size=weight.shape) + 0.1)
    return made


def clips(rng):
    waveform = 0.3 * rng.standard_normal((3, 283)).astype("float32")
    return {
        "waveform": waveform,
        "lengths": np.array([283, 97, 200], "int32"),
    }


@pytest.mark.costly
def test_layers_are_pooled_over_real_frames_and_decoded(
    model, encoder, rng, monkeypatch
):
    inputs = clips(rng)
    states = encoder.hidden_states(inputs)
    expected = np.stack(
        [
            [
                row[real].mean(axis=0)
                for row, real in zip(numpy(x), numpy(mask), strict=True)
            ]
            for x, mask in (states[0], states[2])
        ],
        axis=1,
    )
    np.testing.assert_allclose(model.embed_layers(inputs), expected, atol=1e-5)
    # Frames of all layers of a corpus would not fit.
    sizes, compute = [], model.frame_model.predict_on_batch

    def computed(part):
        sizes.append(len(part["waveform"]))
        return compute(part)

    with monkeypatch.context() as patch:
        patch.setattr(model.frame_model, "predict_on_batch", computed)
        in_parts = model.embed_layers(inputs, batch_size=2)
    assert sizes == [2, 1]
    np.testing.assert_allclose(in_parts, expected, atol=1e-5)
    assert model.embed_layers(inputs["waveform"][:0]).shape == (0, 2, 12)
    scores = numpy(model(inputs))
    np.testing.assert_allclose(
        scores, numpy(model.decoder(expected.astype("float32"))), atol=1e-5
    )
    assert np.ptp(scores, axis=0).max() > 1e-3
    whole = models.GaussianAdaptiveTransformer(encoder, num_classes=2)
    assert whole.layer_numbers == [1, 2, 3] and whole.decoder.num_layers == 3


def test_only_the_decoder_is_trained(rng):
    encoder = speech_encoder()
    model = tiny.eager(
        models.GaussianAdaptiveTransformer(encoder, labels=LABELS, filters=4)
    )
    before = encoder.get_weights()
    trained = model.decoder.get_weights()
    model.fit(clips(rng)["waveform"], np.eye(3), verbose=0)
    for one, other in zip(before, encoder.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.abs(trained[-2] - model.decoder.get_weights()[-2]).max() > 0
    ids = {id(weight) for weight in model.trainable_weights}
    assert ids == {id(weight) for weight in model.decoder.trainable_weights}


def test_the_backbone_is_run_in_inference(rng):
    """Nothing of what it computes is hidden in training, as of a preset."""
    hiding = [layers.BandMasking(7, num_masks=3, rate=1.0, seed=1)]
    encoder = transformer(
        filterbank="log_mel", frontend_filters=7, augmentation=hiding
    )
    model = models.GaussianAdaptiveTransformer(
        encoder, labels=LABELS, filters=4, chunk_s=0.25, dropout=0.5
    )
    inputs = clips(rng)
    expected = numpy(model.layer_frames(inputs)["sequence_output"])
    found = model.layer_frames(inputs, training=True)["sequence_output"]
    np.testing.assert_allclose(numpy(found), expected, atol=1e-5)
    hidden = encoder(inputs, training=True)["sequence_output"]
    assert np.abs(numpy(hidden) - expected[..., -12:]).max() > 0.1
    # What is behind it is trained.
    scores = [numpy(model(inputs, training=True)) for _ in range(2)]
    assert np.abs(scores[0] - scores[1]).max() > 1e-4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("augmentation", [layers.RandomGain()]),
        ("dropout", 0.1),
        ("trainable", True),
    ],
)
def test_what_would_change_nothing_of_the_backbone_is_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}` changes a .*{name}="):
        models.GaussianAdaptiveTransformer.from_preset(
            "audio_transformer_small",
            num_classes=2,
            backbone_kwargs={name: value},
        )


@pytest.mark.costly
def test_a_preset_brings_the_whole_back(model, rng, tmp_path):
    inputs = clips(rng)
    model.save_to_preset(str(tmp_path / "preset"))
    again = models.AudioClassifier.from_preset(str(tmp_path / "preset"))
    assert isinstance(again, models.GaussianAdaptiveTransformer)
    assert again.get_config()["layers"] == [0, 2]
    np.testing.assert_allclose(
        numpy(again(inputs)), numpy(model(inputs)), atol=1e-6
    )
    new = models.AudioClassifier.from_preset(
        str(tmp_path / "preset"), labels=["a", "b"], module="gct"
    )
    assert new.decoder.num_classes == 2 and new.decoder.module == "gct"
    np.testing.assert_allclose(
        new.embed_layers(inputs), model.embed_layers(inputs), atol=1e-6
    )
    with pytest.raises(TypeError, match="did you mean 'module'"):
        models.AudioClassifier.from_preset(
            str(tmp_path / "preset"), modul="gct"
        )
    with pytest.raises(ValueError, match="`augmentation` changes a backbone"):
        models.AudioClassifier.from_preset(
            str(tmp_path / "preset"), augmentation=[layers.RandomGain()]
        )
    thawed = models.AudioClassifier.from_preset(
        str(tmp_path / "preset"), trainable=True, augmentation=[]
    )
    assert len(thawed.trainable_weights) == len(model.decoder.weights)


@pytest.mark.costly
def test_a_clone_scores_alike_and_is_saved(model, rng, tmp_path):
    inputs = clips(rng)
    clone = keras.models.clone_model(model)
    assert np.ptp(numpy(clone(inputs)) - numpy(model(inputs))) > 1e-3
    clone.set_weights(model.get_weights())
    assert len(clone.trainable_weights) == len(model.decoder.weights)
    clone.save(tmp_path / "clone.keras")
    model.save(tmp_path / "model.keras")
    load = keras.saving.load_model
    for again in (
        clone,
        load(tmp_path / "clone.keras"),
        load(tmp_path / "model.keras"),
    ):
        np.testing.assert_allclose(
            numpy(again(inputs)), numpy(model(inputs)), atol=1e-6
        )


@pytest.mark.slow
def test_a_new_head_over_the_backbone_of_another_classifier(rng, tmp_path):
    encoder = speech_encoder()
    other = models.AudioClassifier(encoder, labels=["a", "b"])
    other.save_to_preset(str(tmp_path / "preset"))
    family = models.GaussianAdaptiveTransformer
    made = family.from_preset(str(tmp_path / "preset"), num_classes=3)
    x = clips(rng)
    frames = encoder(x)
    np.testing.assert_allclose(
        made.embed_layers(x)[:, -1],
        numpy(other.pooler(frames["sequence_output"], frames["frame_mask"])),
        atol=1e-5,
    )
    with pytest.raises(ValueError, match="is of AudioClassifier"):
        family.from_preset(str(tmp_path / "preset"))


def test_layers_that_do_not_fit_are_refused(encoder):
    for numbers in ([], [4], [2, 1], [1, 1], ["1"]):
        with pytest.raises(ValueError, match=r"to 3. Received: layers="):
            models.GaussianAdaptiveTransformer(
                encoder, num_classes=2, layers=numbers
            )
    pooled = transformer(pool_every=1)
    with pytest.raises(ValueError, match="equally many frames"):
        models.GaussianAdaptiveTransformer(pooled, num_classes=2)
    with pytest.raises(TypeError, match="no argument 'pooling'"):
        models.GaussianAdaptiveTransformer(
            encoder, num_classes=2, pooling="mean"
        )


def test_what_a_frozen_backbone_has_no_use_for_is_known_of_every_class():
    taken = {
        name
        for family in models.BACKBONES.values()
        for name in family.arguments()
    }
    of_training = {
        name
        for name in taken
        if "drop" in name or name in ("augmentation", "mask_rate", "trainable")
    }
    assert set(preset_tasks.OF_TRAINING) == of_training
