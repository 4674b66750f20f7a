"""WavLM, HuBERT and wav2vec 2.0: what the contract of backbones leaves open.

`tests/peers/test_wavlm.py` compares them with `transformers`.
"""

import functools
import inspect
import json
import pickle
import zipfile

import keras
import keras_hub
import naive_wavlm
import numpy as np
import published
import pytest
import tiny
from backbone_cases import RATE_HZ, wavlm
from keras import ops

from audio_tf import layers, torch_files
from audio_tf.models import AudioBackbone, AudioClassifier, WavLMBackbone

LARGE = {"feat_extract_norm": "layer", "do_stable_layer_norm": True}
HUBERT = {"model_type": "hubert", "conv_bias": True, **LARGE}
# Fields that a configuration may lack, or that none of the family is without.
OPTIONAL = {"architectures", "model_type", "num_buckets", "max_bucket_distance"}
FORMATS = {
    "pytorch_model.bin": published.write_bin,
    "model.safetensors": published.write_safetensors,
}


def checkpoint(folder, rng, file="pytorch_model.bin", older=True, **changes):
    """A generated checkpoint, its configuration and its weights."""
    config = published.config(**changes)
    arrays = published.weights(config, rng, older)
    published.write_config(
        folder, config, do_normalize=True, sampling_rate=RATE_HZ
    )
    if file is not None:
        FORMATS[file](folder / file, arrays)
    return config, arrays


def clips(rng):
    x = rng.uniform(-0.5, 0.5, (2, 151)).astype("float32")
    return x, np.array([151, 77], "int32")


@pytest.mark.parametrize(
    "file, older, changes",
    [
        ("pytorch_model.bin", True, {}),
        ("model.safetensors", False, LARGE),
        ("pytorch_model.bin", False, HUBERT),
    ],
    ids=["wavlm_base", "wavlm_large", "hubert"],
)
def test_a_checkpoint_gives_what_its_numbers_say(
    file, older, changes, rng, tmp_path
):
    """Against numpy, that takes the numbers by their published names."""
    if file == "model.safetensors":
        reason = "SAFETENSORS ARE NOT TESTED: the package is not installed"
        pytest.importorskip("safetensors", reason=reason)
    config, arrays = checkpoint(tmp_path, rng, file, older, **changes)
    model = AudioBackbone.from_preset(str(tmp_path), return_hidden_states=True)
    assert type(model) is WavLMBackbone and model.normalize_waveform
    assert model.sample_rate_hz == RATE_HZ
    sizes = sum(array.size for array in arrays.values())
    assert model.count_params() == sizes
    x, lengths = clips(rng)
    found = model({"waveform": x, "lengths": lengths})["hidden_states"]
    for clip, length in enumerate(lengths):
        expected = naive_wavlm.hidden_states(
            config, arrays, x[clip, :length], normalize=True
        )
        assert len(expected) == 3
        own = ops.convert_to_numpy(found)[clip, :, : len(expected[0])]
        np.testing.assert_allclose(own, expected, atol=2e-5)


def test_kerashub_and_the_classifier_load_it_too(rng, tmp_path):
    _, arrays = checkpoint(tmp_path, rng)
    x, _ = clips(rng)
    # As of a model that was fine-tuned, in half precision and two files.
    stored = {f"wavlm.{n}": a.astype("float16") for n, a in arrays.items()}
    stored["classifier.weight"] = np.ones((3, 12), "float16")
    (tmp_path / "pytorch_model.bin").unlink()
    weight_map = {}
    for part in range(2):
        names = sorted(stored)[part::2]
        file = f"pytorch_model-{part}.bin"
        published.write_bin(tmp_path / file, {n: stored[n] for n in names})
        weight_map |= dict.fromkeys(names, file)
    (tmp_path / "pytorch_model.bin.index.json").write_text(
        json.dumps({"weight_map": weight_map})
    )
    hub = keras_hub.models.Backbone.from_preset(str(tmp_path))
    assert type(hub) is WavLMBackbone
    expected = hub(x)["sequence_output"]
    model = AudioClassifier.from_preset(
        str(tmp_path), labels=["a", "b"], mask_rate=0.0, chunk_s=0.1
    )
    found = model.backbone(x)["sequence_output"]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(ValueError, match="no task.json"):
        AudioClassifier.from_preset(str(tmp_path))


def test_what_does_not_fit_is_named(rng, tmp_path):
    _, arrays = checkpoint(tmp_path, rng, file=None)
    file = tmp_path / "pytorch_model.bin"
    load = AudioBackbone.from_preset
    with pytest.raises(ValueError, match="no model.safetensors.*model.bin'"):
        load(str(tmp_path))
    bare = load(str(tmp_path), load_weights=False, num_layers=1)
    assert bare.num_layers == 1 and bare.attention_kwargs["num_buckets"] == 16
    published.write_bin(file, arrays)
    for arguments, message in (
        ({"num_layers": 1}, "0 that are missing.*layers.1.att"),
        ({"num_layers": 3}, "that are missing, first.*layers.2.att"),
        ({"intermediate_dims": (5,)}, "of shape .12, 7., .12, 5. in the model"),
        (
            {"attention": "full", "attention_kwargs": {}},
            "of 'gated_relative' attention",
        ),
        ({"conv_norm": "layer"}, "missing, first.*conv_layers.1.layer_norm"),
    ):
        with pytest.raises(ValueError, match=message):
            load(str(tmp_path), **arguments)
    with pytest.raises(TypeError, match="did you mean 'num_layers'"):
        load(str(tmp_path), num_layer=1)
    lost = {name: arrays[name] for name in arrays if "projection.w" not in name}
    published.write_bin(file, lost)
    with pytest.raises(ValueError, match="one feature_projection.projection"):
        load(str(tmp_path))
    for wrong, message in (
        ({"add_adapter": True}, "no counterpart of add_adapter=True"),
        ({"feat_extract_activation": "relu"}, "has one activation"),
        ({"num_attention_heads": 0}, "num_attention_heads. must be a pos"),
        ({"hidden_size": "12"}, "hidden_size. must be a positive integer"),
    ):
        published.write_config(tmp_path, published.config(**wrong))
        with pytest.raises(ValueError, match=message):
            load(str(tmp_path))


@pytest.mark.parametrize("field", sorted({*published.CONFIG} - OPTIONAL))
def test_a_field_that_a_configuration_lacks_is_named(field, tmp_path):
    config = {**published.CONFIG, field + "x": 1}
    del config[field]
    published.write_config(tmp_path, config)
    message = f"must have '{field}'; did you mean '{field}x'.*Received: .'act"
    with pytest.raises(ValueError, match=message):
        AudioBackbone.from_preset(str(tmp_path), load_weights=False)


@pytest.mark.parametrize("file", ["config.json", "preprocessor_config.json"])
def test_files_of_a_model_that_are_no_configuration_are_named(file, tmp_path):
    published.write_config(tmp_path, published.CONFIG, do_normalize=True)
    for content, message in (
        ("{half", f"{file} must be JSON .*property name"),
        ("[1]", f"{file} must be an object of JSON. Received: list"),
    ):
        (tmp_path / file).write_text(content)
        with pytest.raises(ValueError, match=message):
            AudioBackbone.from_preset(str(tmp_path), load_weights=False)


def test_a_pickle_of_anything_else_is_refused(rng, tmp_path):
    """It could run code; and files of PyTorch before 1.6 are no archives."""
    path = tmp_path / "weights.bin"
    one = {"one": np.ones(3, "float32")}
    published.write_bin(path, one, extra=RATE_HZ)
    archive = torch_files.Archive(path)
    assert archive.keys() == ["one"]
    np.testing.assert_array_equal(archive.get_tensor("one"), one["one"])
    published.write_bin(path, one, extra=np.float64)
    with pytest.raises(ValueError, match="tensors alone.*numpy.float64"):
        torch_files.Archive(path)
    path.write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
    with pytest.raises(ValueError, match="since 1.6.*weights.bin"):
        torch_files.Archive(path)


def test_a_file_of_weights_that_is_none_says_why(rng, tmp_path):
    """PyTorch's own function could not load what was cut off, either."""
    path = tmp_path / "weights.bin"
    one = {"one": rng.standard_normal(31).astype("float32")}
    published.write_bin(path, one)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    with pytest.raises(ValueError, match="weights.bin, .*cut off") as caught:
        torch_files.Archive(path)
    assert "torch.load" not in str(caught.value)
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ValueError, match="weights.bin, .*Git LFS"):
        torch_files.Archive(path)
    place = whole.index(one["one"].tobytes())
    turned = bytes([whole[place] ^ 255])
    path.write_bytes(whole[:place] + turned + whole[place + 1 :])
    archive = torch_files.Archive(path)
    with pytest.raises(ValueError, match="weights.bin is damaged"):
        archive.get_tensor("one")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("weights/data.pkl", pickle.dumps([1.0]))
    with pytest.raises(ValueError, match="dictionary .*list in .*weights.bin"):
        torch_files.Archive(path)
    # As trainers save a model among other things.
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "weights/data.pkl", pickle.dumps({"model": {}, "epoch": 3})
        )
    with pytest.raises(ValueError, match=r"names.*\['model', 'epoch'\] in"):
        torch_files.Archive(path)


def test_the_table_is_one_for_all_blocks(tmp_path):
    model = wavlm(num_layers=3)
    tables = {id(block.attention.positions) for block in model.blocks}
    assert len(tables) == 1
    paths = [w.path for w in model.weights if w.path.endswith("/table")]
    assert len(paths) == 1
    model.save_weights(tmp_path / "model.weights.h5")
    again = wavlm(num_layers=3)
    again.load_weights(tmp_path / "model.weights.h5")
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.costly
@pytest.mark.one_backend
@pytest.mark.parametrize("size", ["wavlm_base", "wavlm_large"])
def test_parameter_counts_are_those_of_the_docstring(size):
    """All blocks but the first have the same: two of them are enough."""
    sizes = WavLMBackbone.sizes
    assert sizes["wavlm_base_plus"] == sizes["wavlm_base"]
    counts = [
        WavLMBackbone.from_preset(size, num_layers=layers).count_params()
        for layers in (1, 2)
    ]
    layers = WavLMBackbone.sizes[size].get("num_layers", 12)
    total = counts[0] + (layers - 1) * (counts[1] - counts[0])
    row = next(
        line
        for line in WavLMBackbone.__doc__.splitlines()
        if f"`{size}`" in line
    )
    assert row.split("|")[-2].strip() == f"{total:,}"


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "samples, frames", [(1, 1), (399, 1), (400, 1), (719, 1), (720, 2)]
)
def test_frames_are_those_of_whole_windows(samples, frames):
    """20 ms apart, of 25 ms, as the published models count them."""
    model = built()
    assert model.frame_size == 320 and model.frontend.window_size == 400
    x = np.ones((2, samples), "float32")
    lengths = np.array([samples, 0], "int32")
    found = model({"waveform": x, "lengths": lengths})
    assert found["sequence_output"].shape[1] == frames
    mask = ops.convert_to_numpy(found["frame_mask"])
    np.testing.assert_array_equal(mask.sum(axis=1), [frames, 0])


@functools.cache
def built():
    """A model to look at, of the published windows."""
    default = inspect.signature(WavLMBackbone).parameters
    names = ("conv_kernels", "conv_strides", "sample_rate_hz")
    return wavlm(
        num_layers=1,
        conv_channels=(3,) * 7,
        **{name: default[name].default for name in names},
    )


def test_five_seconds_are_249_frames():
    x = keras.KerasTensor((1, 80_000))
    assert built().frontend.compute_output_spec(x).shape[1] == 249
    assert built().frontend.longest_clip(249) == 80_079


@pytest.mark.costly
def test_training_drops_and_masks(rng):
    """The learned frame and every other weight are trained."""
    model = wavlm(mask_rate=0.9, mask_frames=3, layer_drop=0.2, num_layers=1)
    classifier = tiny.eager(AudioClassifier(model, 2, chunk_s=0.1))
    x, _ = clips(rng)
    before = [np.array(w) for w in model.trainable_weights]
    for _ in range(3):
        classifier.fit(x, np.eye(2), verbose=0)
    still = [
        weight.path
        for weight, old in zip(model.trainable_weights, before, strict=True)
        if np.array_equal(weight, old)
    ]
    # A key bias adds the same score to all keys.
    assert all(path.endswith("key/bias") for path in still), still


@pytest.mark.one_backend
@pytest.mark.parametrize("size, groups", [(1, 1), (5, 3), (8, 1), (37, 2)])
def test_positions_equal_a_naive_convolution(size, groups, rng):
    """Of kernels of fewer and of more frames than one product takes."""
    layer = layers.ConvolutionalPositions(size, groups)
    x = rng.standard_normal((2, 7, 6)).astype("float32")
    layer.build(x.shape)
    for weight in layer.weights:
        weight.assign(rng.standard_normal(weight.shape))
    direction = np.asarray(layer.direction).transpose(2, 1, 0)
    config = {
        "num_conv_pos_embeddings": size,
        "num_conv_pos_embedding_groups": groups,
    }
    place = "encoder.pos_conv_embed.conv"
    arrays = {
        f"{place}.weight_v": direction.astype("float64"),
        f"{place}.weight_g": np.asarray(layer.gain)[None, None],
        f"{place}.bias": np.asarray(layer.bias),
    }
    for clip, found in zip(x, ops.convert_to_numpy(layer(x)), strict=True):
        expected = clip + naive_wavlm.positions(config, arrays, clip)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    fresh = layers.ConvolutionalPositions(size, groups)
    fresh.build((None, None, 60))
    # It begins with directions that are about as long as their gains say.
    np.testing.assert_allclose(fresh.kernel(), fresh.direction, rtol=0.2)


def test_learned_masking_hides_runs(rng):
    layer = layers.LearnedFrameMasking(mask_rate=0.3, run_frames=4, seed=3)
    x = rng.standard_normal((40, 50, 3)).astype("float32")
    y = ops.convert_to_numpy(layer(x, training=True))
    np.testing.assert_array_equal(layer(x), x)
    hidden = (y == np.asarray(layer.embedding)).all(axis=-1)
    np.testing.assert_array_equal(y[~hidden], x[~hidden])
    # 1 - (1 - 0.075)^4 of the frames behind the first few.
    assert abs(hidden[:, 3:].mean() - 0.268) < 0.05
    for row in hidden:
        runs = "".join(".x"[int(each)] for each in row).strip("x").split(".")
        assert all(len(run) >= 4 for run in runs if run)


def test_layer_drop_hands_on_the_input(rng):
    block = layers.TransformerBlock(2, 3, (5,), layer_drop=0.5)
    x = rng.standard_normal((2, 7, 6)).astype("float32")
    whole = ops.convert_to_numpy(block(x))
    found = [ops.convert_to_numpy(block(x, training=True)) for _ in range(20)]
    dropped = [np.array_equal(each, x) for each in found]
    assert 0 < sum(dropped) < 20
    for each, passed in zip(found, dropped, strict=True):
        np.testing.assert_allclose(each, x if passed else whole, atol=1e-6)


def test_dropout_within_the_feed_forward(rng):
    layer = layers.FeedForward((500,), "relu", activation_dropout=0.5)
    x = rng.standard_normal((1, 7, 6)).astype("float32")
    layer.build(x.shape)
    layer.output_dense.kernel.assign(np.eye(500, 6))
    hidden = ops.convert_to_numpy(layer(x))
    found = ops.convert_to_numpy(layer(x, training=True))
    kept = found != 0.0
    np.testing.assert_allclose(found[kept], 2.0 * hidden[kept], rtol=1e-5)
    assert kept.sum() < (hidden != 0.0).sum()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"conv_norm": "grup"}, "did you mean 'group'"),
        ({"conv_strides": (4,)}, "one of `channels`, `kernels` and `strides`"),
        ({"position_groups": 5}, "`groups` must divide"),
        ({"num_heads": 5}, "`num_heads` must divide"),
        ({"mask_rate": 1.5}, "`mask_rate` must be a number in"),
        ({"mask_frames": 0}, "`mask_frames` must be a positive"),
        ({"frontend_dropout": 1.5}, "`frontend_dropout` must be a number"),
        ({"layer_drop": 1.0}, "`layer_drop` must be a number in"),
        ({"normalize_waveform": 1}, "`normalize_waveform` must be True"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        wavlm(**arguments)
