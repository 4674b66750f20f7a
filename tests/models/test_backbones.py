"""The contract of every backbone, driven by the table of backbones."""

import functools
import json
import shutil
import warnings

import keras
import keras_hub
import naive
import numpy as np
import pytest
from backbone_cases import (
    ALIKE,
    ATTENDING,
    CONVOLUTIONAL,
    LORA,
    SMALL,
    SMALLER,
    UNFITTING,
    WAVEFORM,
    albert,
    each,
    speech_encoder,
    transformer,
)

from audio_tf import compat, layers, models
from audio_tf.attention import ATTENTIONS
from audio_tf.models import BACKBONES
from audio_tf.ops.layer import Dropout

all_backbones = pytest.mark.parametrize("name", BACKBONES)
every_backbone = pytest.mark.parametrize("name", each(BACKBONES))
with_attention = pytest.mark.parametrize("name", ATTENDING)


@functools.cache
def built(name):
    """A backbone to look at, which no test changes."""
    return SMALL[name]()


def batch(model, rng, samples=131, clips=3):
    """Clips, lengths and how many samples one is; frames for features."""
    if model.takes == "features":
        x = rng.standard_normal((clips, samples // 11, 14))
        return x.astype("float32"), np.array([11, 5, 1], "int32")[:clips]
    x = rng.standard_normal((clips, samples)).astype("float32")
    return x, np.array([131, 59, 3], "int32")[:clips]


def given(model, x, lengths=None):
    return {model.takes: x, "lengths": lengths}


def frames_of(model, x, lengths=None):
    """`sequence_output` and mask as arrays."""
    outputs = model(x if lengths is None else given(model, x, lengths))
    return as_arrays(outputs["sequence_output"], outputs["frame_mask"])


def as_arrays(*tensors):
    return [keras.ops.convert_to_numpy(x) for x in tensors]


def test_every_backbone_has_a_small_form():
    assert SMALL.keys() == BACKBONES.keys()
    for name, family in BACKBONES.items():
        model = built(name)
        assert type(model) is family
        assert isinstance(model, models.AudioBackbone)
        assert model.takes in ("waveform", "features")
        assert (model.sample_rate_hz is None) == (model.takes == "features")
        assert family.rate_hz_of(model.get_config()) == model.sample_rate_hz
        attends = name in ATTENDING
        assert bool(model.blocks) is attends
        for found in (model.attention, model.made_for_frames):
            assert (found is not None) is attends


@all_backbones
def test_flags_are_true_or_false(name):
    """A text would be True, whatever it says."""
    family, config = BACKBONES[name], built(name).get_config()
    for argument, default in family.defaults().items():
        if isinstance(default, bool):
            with pytest.raises(ValueError, match=f"`{argument}` must be True"):
                family.from_config({**config, argument: "no"})


@all_backbones
def test_no_attribute_of_a_class_hides_a_layer(name):
    """Torch keeps layers where an attribute of the class is found first."""
    model = built(name)
    if model.takes == "waveform":
        model = models.AudioClassifier(model, 3)
        assert model.preprocessor is not None
    for part in (model, *model._flatten_layers(include_self=False)):
        for attribute, value in {
            **vars(part),
            **vars(part).get("_modules", {}),
        }.items():
            if isinstance(value, keras.Layer):
                assert getattr(part, attribute) is value
                assert not hasattr(type(part), attribute), attribute


def test_a_rate_may_be_the_same_for_all_of_a_class():
    class Fixed(models.AudioBackbone):
        sample_rate_hz = 8_000

    assert Fixed.rate_hz_of({}) == 8_000


@all_backbones
def test_config_is_complete_and_survives(name):
    model = built(name)
    assert naive.missing_from_config(model) == []
    config = json.loads(json.dumps(model.get_config()))
    again = type(model).from_config(json.loads(json.dumps(config)))
    assert json.loads(json.dumps(again.get_config())) == config


@all_backbones
def test_a_model_is_a_layer_of_others(name, rng):
    """Keras' functional models hand on no input that is absent."""
    backbone = built(name)
    x, lengths = batch(backbone, rng)
    inputs = keras.Input(x.shape[1:])
    outer = keras.Model(inputs, backbone(inputs)["sequence_output"])
    expected, _ = frames_of(backbone, x)
    found = keras.ops.convert_to_numpy(outer(x))
    np.testing.assert_allclose(found, expected, atol=1e-5)

    inputs = [inputs, keras.Input((), dtype="int32")]
    outputs = backbone(given(backbone, *inputs))
    outer = keras.Model(inputs, outputs["sequence_output"])
    expected, mask = frames_of(backbone, x, lengths)
    found = keras.ops.convert_to_numpy(outer([x, lengths]))
    np.testing.assert_allclose(found[mask], expected[mask], atol=1e-5)


@every_backbone
def test_no_argument_is_ignored(name):
    """Unknown ones are named with the nearest, in whatever way they come."""
    family, config = type(built(name)), built(name).get_config()
    one, other = sorted(family.arguments())[:2]
    for call in (
        lambda: family.from_config({**config, one + "x": 1}),
        lambda: family.from_config({**config, other + "x": 1}),
        lambda: SMALL[name](dtyp="float32"),
    ):
        with pytest.raises(TypeError, match="did you mean"):
            call()


@all_backbones
def test_padding_holds_anything(name, rng):
    """Real frames are those of the clip alone; lengths may be extreme."""
    model = built(name)
    x, lengths = batch(model, rng)
    x[:2, :1] *= 3.0
    alone = [
        frames_of(model, x[clip : clip + 1, :length])[0][0]
        for clip, length in enumerate(lengths)
    ]
    wider = np.concatenate([x, x], axis=1)
    for padding in (9.0, np.nan, np.inf):
        for clip, length in enumerate(lengths):
            wider[clip, length:] = padding
        frames, mask = frames_of(model, wider, lengths)
        for clip, expected in enumerate(alone):
            assert mask[clip].sum() == len(expected)
            np.testing.assert_allclose(
                frames[clip][mask[clip]], expected, atol=2e-5
            )
    whole = frames_of(model, x)
    for extreme in (
        np.array([2**31 - 1] * 3, "int32"),
        np.array([2**33 + 5] * 3, "int64"),
        np.array([2**31 - 1] * 3, "uint32"),
        keras.ops.convert_to_tensor([2**31 - 1] * 3, "int32"),
    ):
        for expected, found in zip(
            whole, frames_of(model, x, extreme), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=1e-6)
    _, mask = frames_of(model, x, np.array([-1, -(2**31), 0], "int32"))
    assert not mask.any()


@every_backbone
def test_padding_of_nan_leaves_gradients_finite(name, rng):
    tf = pytest.importorskip("tensorflow")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("gradients are taken by TensorFlow's tape")
    model = built(name)
    x, lengths = batch(model, rng)

    def gradients(x):
        with tf.GradientTape() as tape:
            outputs = model(given(model, x, lengths), training=True)
            mean = layers.MaskedMean()(
                outputs["sequence_output"], mask=outputs["frame_mask"]
            )
            loss = tf.reduce_sum(mean**2)
        weights = model.trainable_variables
        return tape.gradient(loss, [w.value for w in weights])

    padding = np.arange(x.shape[1]) >= lengths[:, None]
    assert padding.any()
    clean, dirty = x.copy(), x.copy()
    clean[padding], dirty[padding] = 0.0, np.nan
    for one, other in zip(gradients(clean), gradients(dirty), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.costly
@every_backbone
def test_dynamic_batch_and_length(name, rng):
    tf = pytest.importorskip("tensorflow")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("graphs are TensorFlow's")
    model = SMALL[name](**SMALLER[name])
    shape = (None,) + model.input[model.takes].shape[1:]

    @tf.function(
        input_signature=[
            tf.TensorSpec(shape, tf.float32),
            tf.TensorSpec((None,), tf.int32),
        ]
    )
    def graph(x, lengths):
        return model(given(model, x, lengths))

    for samples, clips in ((131, 3), (77, 2), (33, 1)):
        x, lengths = batch(model, rng, samples, clips)
        found = graph(x, lengths)
        expected = model(given(model, x, lengths))
        for key in expected:
            np.testing.assert_allclose(found[key], expected[key], atol=1e-5)


# What may be asked of the whole, beside each attention.
CAUSALITY = {
    "audio_transformer": [
        {},
        {"causal": False},
        {"causal": True},
        {"multiscale": "block"},
        {"multiscale": "causal"},
        {"multiscale": "block", "num_layers": 1},
        {"multiscale": "block", "causal": False},
        {"pool_every": 1},
        {"pool_every": 1, "multiscale": "causal", "causal": True},
        {"pool_every": 1, "pool_size": 3, "pool_strides": 1},
        {"pool_every": 1, "pool_size": 3, "pool_strides": 2},
        {"attention_kwargs": {"causal": False}},
        *(
            {"attention": each, "num_layers": 1}
            for each in (
                "local_dense_synthesizer",
                "gaussian_adaptive",
                "skewed_gaussian",
            )
        ),
        {"attention": "xbox", "multiscale": "causal"},
        {"attention": "random_synthesizer", "pool_every": 1},
    ],
    "audio_albert": [
        {},
        {"causal": True},
        {"causal": None},
        {"causal": None, "attention": "simple_lsh"},
    ],
    "speech_encoder": [{}, {"causal": True}],
    **dict.fromkeys(CONVOLUTIONAL, [{}]),
    "wavlm": [{}],
}


def first_that_moves(model, rng, begin, samples=352):
    """First frame of the output that samples from `begin` on move."""
    shape = (3, samples) + model.input[model.takes].shape[2:]
    x = rng.standard_normal(shape).astype("float32")
    y = x.copy()
    y[:, begin:] = 3.0 * rng.standard_normal(x[:, begin:].shape)
    both, _ = frames_of(model, np.concatenate([x, y]))
    moved = np.abs(both[3:] - both[:3]).max(axis=(0, 2)) > 1e-5
    assert moved.any()
    return int(moved.argmax())


def every_attention():
    """Options of a backbone around each; tests of the attentions move them."""
    each = [{"attention": name, "num_layers": 1} for name in ATTENTIONS]
    return pytest.param(
        "audio_transformer", each, id="attentions", marks=pytest.mark.slow
    )


@pytest.mark.parametrize(
    "name, asked",
    [
        *(
            pytest.param(
                name,
                CAUSALITY[name],
                id=name,
                marks=[pytest.mark.slow] if name in ALIKE else [],
            )
            for name in BACKBONES
        ),
        every_attention(),
    ],
)
def test_causal_tells_the_truth(name, asked, rng):
    """Moving the future moves no earlier frame if and only if causal."""
    made = {"made_for_frames": 352} if name in ATTENDING else {}
    for options in asked:
        model = SMALL[name](**{**made, **options})
        begin = 5 * model.output_frame_size
        samples = 16 * model.output_frame_size
        first = first_that_moves(model, rng, begin, samples)
        assert (first == 5) if model.causal else (first < 5), options
        if "causal" in options and "causal" in type(model).arguments():
            assert model.get_config()["causal"] is options["causal"]
        looks_ahead = options.get("causal", True) is not False
        if not model.causal and looks_ahead and name == "audio_transformer":
            if "causal" not in options.get("attention_kwargs", {}):
                with pytest.raises(ValueError, match="causal"):
                    SMALL[name](**{**options, "causal": True})


# What makes the sizes of a family small, beside their width.
NARROW = {
    models.AudioTransformerBackbone: {"frontend_filters": 16},
    models.AudioAlbertBackbone: {"initializer_range": 0.3},
    models.WavLMBackbone: {
        "num_layers": 1,
        "intermediate_dims": (8,),
        "conv_channels": (4,) * 7,
        "position_groups": 2,
    },
}


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "size",
    [
        size
        for size, family in models.list_sizes().items()
        if family not in [BACKBONES[name] for name in CONVOLUTIONAL]
    ],
)
def test_causal_of_every_size(size, rng):
    """Of the released architectures, their widths made small."""
    family = models.list_sizes()[size]
    small = {"num_heads": 2, "key_dim": 3, "hidden_dim": 8}
    model = family.from_preset(size, **small, **NARROW[family])
    begin = 5 * model.output_frame_size
    first = first_that_moves(model, rng, begin, 10 * model.output_frame_size)
    assert (first == 5) if model.causal else (first < 5)
    ahead = size.endswith("multiscale") or "_mel_" in size
    ahead = ahead or family is models.WavLMBackbone
    assert model.causal == (family.takes == "waveform" and not ahead)


@with_attention
@pytest.mark.parametrize("options", [{}, {"pool_every": 1}])
def test_blocks_and_states(name, options, rng):
    if options and name != "audio_transformer":
        pytest.skip("it does not pool")
    model = SMALL[name](**options) if options else built(name)
    x, lengths = batch(model, rng)
    inputs = given(model, x, lengths)
    states, into = model.hidden_states(inputs), model.block_inputs(inputs)
    assert len(model.blocks) == len(into) == len(states) - 1 == 2
    frames = len(as_arrays(into[0][0])[0][0])
    assert frames == model.blocks[0].compute_output_spec(into[0][0]).shape[1]
    for index, (state, mask) in enumerate(into):
        state, mask = as_arrays(state, mask)
        assert state.shape == (3, *mask.shape[1:], 12) and mask.dtype == bool
        after = model.blocks[index](state, mask=mask)
        found, expected = as_arrays(after, states[index + 1][0])
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert model.blocks[index].attention_name == model.attention
    last, mask = as_arrays(*states[-1])
    outputs, frame_mask = frames_of(model, x, lengths)
    np.testing.assert_array_equal(mask, frame_mask)
    np.testing.assert_allclose(last[mask], outputs[mask], atol=1e-5)
    # As many samples a frame as the model says.
    assert len(mask[0]) * model.output_frame_size >= x.shape[1] - 22
    with pytest.raises(ValueError, match="Received: keys="):
        model.hidden_states({"sound": x})


@pytest.mark.parametrize("name", each(CONVOLUTIONAL))
def test_without_attention_there_is_none_to_ask_for(name, rng):
    model = built(name)
    x, _ = batch(model, rng)
    for call in (model.hidden_states, model.block_inputs):
        with pytest.raises(ValueError, match="has none. Received: .*Backbone"):
            call(x)
    with pytest.raises(ValueError, match="without attention has one of"):
        model.enable_lora(2)
    assert model.max_samples is None and model.max_frames is None
    frames, mask = frames_of(model, x)
    spectra = 1 + x.shape[1] // model.frame_size
    stride = model.output_frame_size // model.frame_size
    assert frames.shape[1] == mask.shape[1] == -(-spectra // stride)
    classifier = models.AudioClassifier(model, 2)
    assert classifier.get_config().items() >= model.head.items()
    plain = models.AudioClassifier(model, 2, pooling="mean", hidden_dim=0)
    assert len(plain.weights) == len(model.weights) + 2


@pytest.mark.parametrize("name", each(WAVEFORM))
def test_augmentation_is_of_training_alone_and_is_kept(name, rng, tmp_path):
    plain = built(name)
    given_config = {
        **plain.get_config(),
        "augmentation": [layers.SpeedPerturbation((3.0, 3.1), seed=1)],
    }
    model = type(plain).from_config(given_config)
    model.set_weights(plain.get_weights())
    x = 0.1 * rng.standard_normal((2, 700)).astype("float32")
    expected, mask = frames_of(plain, x)
    found, _ = frames_of(model, x)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # Faster clips have fewer real frames.
    (faster,) = as_arrays(model(x, training=True)["frame_mask"])
    assert 0 < faster.sum() < mask.sum()
    assert model.heard["waveform"] is not model.input["waveform"]
    model.save_to_preset(str(tmp_path))
    again = models.AudioBackbone.from_preset(str(tmp_path))
    (kept,) = again.augmentation
    assert kept.get_config() == model.augmentation[0].get_config()
    with pytest.raises(TypeError, match="must be a list of augmentations"):
        type(plain).from_config({**given_config, "augmentation": [3]})
    with pytest.raises(ValueError, match="TimeShift must be made for"):
        wrong = layers.TimeShift(sample_rate_hz=2 * plain.sample_rate_hz)
        type(plain).from_config({**given_config, "augmentation": [wrong]})


@with_attention
def test_the_longest_input(name, rng):
    """Only tables have one; it is refused by name one sample beyond."""
    assert built(name).max_samples is None
    model = SMALL[name](attention="random_synthesizer", made_for_frames=7)
    assert model.max_frames == 7 == model.made_for_frames
    shape = (1, model.max_samples) + model.input[model.takes].shape[2:]
    assert frames_of(model, np.ones(shape, "float32"))[0].shape[1] == 7
    longer = np.ones((1, shape[1] + 1) + shape[2:], "float32")
    for call in (model, model.hidden_states, model.block_inputs):
        with pytest.raises(ValueError, match=f"at most {shape[1]} "):
            call(longer)
    own = SMALL[name](
        attention="random_synthesizer", attention_kwargs={"max_length": 9}
    )
    assert own.max_frames == 9


def test_attentions_are_sized_behind_a_pooling_too():
    model = transformer(
        num_layers=3,
        attention="random_synthesizer",
        made_for_frames=17,
        pool_every=1,
        pool_size=3,
        pool_strides=2,
    )
    tables = [block.attention.table.shape[1] for block in model.blocks]
    assert tables == [17, 9, 5] and model.max_frames == 17
    assert model.output_frame_size == 4 * model.frame_size == 44
    small = models.AudioTransformerBackbone.from_preset(
        "audio_transformer_small", attention="random_synthesizer"
    )
    assert 0.80e6 < small.count_params() < 0.82e6
    strided = transformer(attention="sparse_strided", made_for_frames=40)
    assert strided.blocks[0].attention.stride == 6


@every_backbone
def test_files_presets_and_clones(name, rng, tmp_path):
    model = SMALL[name](**SMALLER[name])
    x, lengths = batch(model, rng)
    inputs = given(model, x, lengths)
    expected = as_arrays(model(inputs)["sequence_output"])[0]
    model.save(tmp_path / "model.keras")
    model.save_to_preset(str(tmp_path / "preset"))
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for again in (
        keras.saving.load_model(tmp_path / "model.keras"),
        models.AudioBackbone.from_preset(tmp_path / "preset"),
        keras_hub.models.Backbone.from_preset(str(tmp_path / "preset")),
        clone,
    ):
        if again is not clone:
            assert again.get_config().keys() == model.get_config().keys()
        np.testing.assert_allclose(
            as_arrays(again(inputs)["sequence_output"])[0], expected, atol=1e-6
        )
    preset = str(tmp_path / "preset")
    load = models.AudioBackbone.from_preset
    for other in UNFITTING[name]:
        with pytest.raises(ValueError, match="do not fit"):
            load(preset, **other)
        config = load(preset, load_weights=False, **other).get_config()
        # Those of a part are in its own.
        config = config.get("encoder", {"config": config})["config"]
        for key, value in other.items():
            assert config[key] == json.loads(json.dumps(value))
    (argument, *_) = UNFITTING[name][0]
    with pytest.raises(TypeError, match=f"did you mean '{argument}'"):
        load(preset, **{argument[:-1]: 1})
    (tmp_path / "preset" / "model.weights.h5").unlink()
    with pytest.raises(ValueError, match="no model.weights.h5"):
        models.AudioBackbone.from_preset(preset)
    models.AudioBackbone.from_preset(preset, load_weights=False)
    (tmp_path / "preset" / "config.json").unlink()
    with pytest.raises(ValueError, match="no config.json"):
        models.AudioBackbone.from_preset(preset)


@pytest.mark.costly
@every_backbone
@pytest.mark.one_backend
def test_lora_int8_and_half_precision(name, rng, tmp_path):
    make = functools.partial(SMALL[name], **SMALLER[name])
    x, lengths = batch(built(name), rng)
    inputs = given(built(name), x, lengths)
    model = make()
    expected = as_arrays(model(inputs)["sequence_output"])[0]
    half = make(dtype="mixed_bfloat16")
    half.set_weights(model.get_weights())
    found = keras.ops.cast(half(inputs)["sequence_output"], "float32")
    # Of norms near zero a single number may be far off, their mean is not.
    assert np.abs(as_arrays(found)[0] - expected).mean() < 0.1
    half.save_to_preset(str(tmp_path / "half"))
    kept = models.AudioBackbone.from_preset(
        str(tmp_path / "half"), dtype="mixed_bfloat16"
    )
    assert kept.stages[0].compute_dtype == "bfloat16"

    model.enable_lora(2, LORA[name])
    np.testing.assert_allclose(
        as_arrays(model(inputs)["sequence_output"])[0], expected, atol=1e-5
    )
    trained = [w.path for w in model.trainable_weights]
    of_lora = LORA[name] or ["query", "value"]
    assert trained and all(any(n in p for n in of_lora) for p in trained)
    with pytest.raises(ValueError, match="none_such"):
        model.enable_lora(2, ["none_such"])

    model = make()
    if name in CONVOLUTIONAL:
        with pytest.raises(ValueError, match="has no dense layer"):
            model.quantize("int8")
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Layer .* does not have")
        model.quantize("int8")
    expected = as_arrays(model(inputs)["sequence_output"])[0]
    model.save(tmp_path / "int8.keras")
    model.save_to_preset(str(tmp_path / "int8"))
    for again in (
        keras.saving.load_model(tmp_path / "int8.keras"),
        models.AudioBackbone.from_preset(str(tmp_path / "int8")),
    ):
        np.testing.assert_array_equal(
            as_arrays(again(inputs)["sequence_output"])[0], expected
        )


@every_backbone
def test_parts_that_rest_do_so_once_loaded(name):
    model = SMALL[name]()
    layer = next(each for each in model.layers if each.trainable_weights)
    parts = compat.layers_within(layer, recursive=False)
    next((each for each in parts if each.weights), layer).trainable = False
    trained = [weight.trainable for weight in model.weights]
    assert 0 < len(model.trainable_weights) < len(SMALL[name]().weights)
    for _ in range(2):
        config = json.loads(json.dumps(model.get_config()))
        model = type(model).from_config(config)
        assert [weight.trainable for weight in model.weights] == trained


@every_backbone
def test_frozen_weights_stay(name):
    model = SMALL[name](trainable=False)
    assert model.trainable_weights == []
    inputs = model.input
    x = layers.MaskedMean()(model(inputs)["sequence_output"])
    around = keras.Model(inputs, keras.layers.Dense(1)(x))
    assert len(around.trainable_weights) == 2
    assert len(built(name).trainable_weights) > 2


@every_backbone
def test_a_frozen_backbone_drops_nothing_out(name, rng):
    """It drops nothing out, and normalises by what it has learned."""
    dropping = {"dropout": 0.5} if name in ATTENDING else {}
    backbone = SMALL[name](**SMALLER[name], **dropping)
    x, _ = batch(backbone, rng)

    def change():
        """How far training moves the outputs of inference."""
        found, expected = (
            as_arrays(backbone(x, training=training)["sequence_output"])[0]
            for training in (True, False)
        )
        return np.abs(found - expected).max()

    assert change() > 0.01
    backbone.trainable = False
    assert change() < 1e-6
    backbone.trainable = True
    assert change() > 0.01


@pytest.mark.parametrize(
    "name", [name for name in ATTENDING if name != "speech_encoder"]
)
def test_all_that_a_rate_is_of_drops_out(name, rng, monkeypatch):
    dropping = {"dropout": 0.5}
    if name == "wavlm":
        dropping |= {"activation_dropout": 0.25, "frontend_dropout": 0.125}
    backbone = SMALL[name](**SMALLER[name], **dropping)
    known = {
        id(layer): (layer.name, layer.rate)
        for layer in compat.layers_within(backbone)
        if isinstance(layer, Dropout) and layer.rate
    }
    called, call = {}, Dropout.call

    def noted(self, inputs, training=False):
        if training and self.rate:
            called[id(self)] = self.name, self.rate
        return call(self, inputs, training)

    monkeypatch.setattr(Dropout, "call", noted)
    backbone(batch(backbone, rng)[0], training=True)
    assert called == known
    # Of weights, of both branches, and of what the first block is given.
    wanted = {
        (f"{what}_dropout", 0.5) for what in ("weight", "attention", "output")
    }
    if name != "audio_transformer":
        wanted.add(("input_dropout", 0.5))
    if name == "wavlm":
        wanted |= {("hidden_dropout", 0.25), ("output_dropout", 0.125)}
    assert set(known.values()) == wanted


@every_backbone
def test_lengths_become_a_mask_once(name, rng, monkeypatch):
    """A model around a backbone takes the mask that the backbone made."""
    backbone, calls = built(name), []
    x, lengths = batch(backbone, rng)
    around = (
        models.AudioClassifier(backbone, 2)
        if name in WAVEFORM
        else models.MaskedAcousticModel(backbone)
    )
    make = layers.FrameMask.call

    def counted(self, *args, **kwargs):
        calls.append(self.name)
        return make(self, *args, **kwargs)

    monkeypatch.setattr(layers.FrameMask, "call", counted)
    for model in (backbone, around):
        calls.clear()
        model(given(model, x, lengths))
        assert calls == ["frame_mask"], model.name


@every_backbone
def test_what_goes_in_is_checked(name, rng):
    model = built(name)
    x, lengths = batch(model, rng)
    for inputs, message in (
        ((100 * x).astype("int16"), "dtype=int16"),
        (keras.ops.cast(100 * x, "int32"), "dtype=int32"),
        (given(model, x, lengths / 2.0), "dtype=float64"),
        (given(model, x, lengths[:1]), "1 lengths, 3 clips"),
        ({model.takes: x, "length": lengths}, "Received: keys="),
        ({"lengths": lengths}, "Received: keys="),
    ):
        with pytest.raises(ValueError, match=message):
            model(inputs)
    if model.takes == "features":
        mask = np.ones(x.shape[:2], bool)
        mask[1, 3] = False
        for other in (mask[:, :-1], mask[..., None], mask[0]):
            with pytest.raises(ValueError, match="with the frames of `feat"):
                model({"features": x, "frame_mask": other})
        inputs = {"features": x, "frame_mask": mask}
        tensors = {k: keras.ops.convert_to_tensor(inputs[k]) for k in inputs}
        for call in (model, model.predict):
            for each in (inputs, {**inputs, "frame_mask": mask.tolist()}):
                with pytest.raises(ValueError, match="must come first"):
                    call(each)
            with pytest.raises(ValueError, match="must come first"):
                call(tensors)


@pytest.mark.parametrize("name", SMALL)
def test_shapes_of_outputs_are_told_beforehand(name, rng):
    model = built(name)
    x, lengths = batch(model, rng)
    found = {key: tuple(each.shape) for key, each in model(x).items()}
    for shape in (x.shape, given(model, x.shape, lengths.shape)):
        assert model.compute_output_shape(shape) == found
    spec = model.compute_output_spec(keras.KerasTensor(x.shape))
    assert {key: tuple(each.shape) for key, each in spec.items()} == found
    with pytest.raises(ValueError, match="keys=.'lengths', 'sound'"):
        model.compute_output_shape({"sound": x.shape, "lengths": (2,)})


def test_sizes_are_known_to_kerashub():
    sizes = models.list_sizes()
    for family in (
        models.AudioTransformerBackbone,
        models.AudioAlbertBackbone,
        models.WavLMBackbone,
    ):
        own = {size for size in sizes if sizes[size] is family}
        assert own and own == set(family.sizes)
        assert own == {*family.presets} - {*models.list_released()}
    assert sizes.keys() <= keras_hub.models.Backbone.presets.keys()
    for size in ("audio_transformer_small", "audio_albert_6"):
        model = keras_hub.models.Backbone.from_preset(size)
        assert type(model) is sizes[size]
        assert model.num_layers == sizes[size].sizes[size]["num_layers"]
        found = models.AudioBackbone.from_preset(size, num_layers=1)
        assert found.num_layers == 1
    for preset, message in (
        ("audio_transformer_smal", "did you mean 'audio_transformer_small'"),
        ("bert_base_en", "did you mean|sizes are"),
    ):
        with pytest.raises(ValueError, match=message):
            models.AudioBackbone.from_preset(preset)
    with pytest.raises(ValueError, match="is of AudioAlbertBackbone"):
        models.AudioTransformerBackbone.from_preset("audio_albert_6")


@pytest.fixture(scope="module")
def saved_encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    speech_encoder(return_hidden_states=True).save_to_preset(str(folder))
    return folder


def test_a_speech_encoder_takes_its_encoders_arguments(saved_encoder, tmp_path):
    load = models.AudioBackbone.from_preset
    for arguments in (
        {"dropout": 0.25},
        {"attention": "shared_qk", "load_weights": False},
        {"num_layers": 3},
    ):
        model = load(str(saved_encoder), **arguments)
        arguments.pop("load_weights", None)
        for key, value in arguments.items():
            assert getattr(model.encoder, key) == value, key
    with pytest.raises(TypeError, match="did you mean 'dropout'"):
        load(str(saved_encoder), dropot=0.2)
    with pytest.raises(ValueError, match="do not fit"):
        load(str(saved_encoder), weighted_sum=True)
    mixed = load(str(saved_encoder), weighted_sum=True, load_weights=False)
    assert mixed.weighted_sum
    with pytest.raises(ValueError, match="dtype is the encoder's"):
        models.SpeechEncoder(albert(), mixed.features, dtype="mixed_float16")
    with pytest.raises(ValueError, match="must take waveforms"):
        models.AudioClassifier(albert(), 2)
    shutil.copytree(saved_encoder, tmp_path / "copy")
    classifier = models.AudioClassifier.from_preset(
        str(tmp_path / "copy"), labels=["a", "b"], dropout=0.5
    )
    assert classifier.dropout == 0.5 and classifier.backbone.causal is False
