"""Other runtimes: equal scores, quantized ones, and a report that can fail."""

import importlib.util
import json

import attention_cases
import backbone_cases
import keras
import numpy as np
import pytest
import soundfile
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip("formats are converted by TensorFlow", allow_module_level=True)
if not all(
    importlib.util.find_spec(package)
    for package in (
        "tf2onnx",
        "onnxruntime",
        "ai_edge_litert",
        "ai_edge_quantizer",
        "openvino",
    )
):
    pytest.skip(
        "OTHER RUNTIMES ARE NOT TESTED: run `make test-formats`",
        allow_module_level=True,
    )

from audio_tf import attention, cli, export
from audio_tf.export import base, formats, signatures, verify
from audio_tf.models import AudioClassifier

FILES = [name for name, format in formats.FORMATS.items() if format.suffix]
every_file = pytest.mark.parametrize("format", FILES)

# Batches with the real samples of each clip, -1 for all. None has the shape
# that the converter's own trial has; 187 samples fill the largest table.
LENGTHS = [(131, [131, 60]), (7, [7, 1, 3]), (187, [-1] * 5), (44, [0])]


def model(rng, **kwargs):
    """A classifier whose weights are as if it had been trained."""
    mechanism = kwargs.get("attention", "full")
    kwargs = {
        "attention_kwargs": attention_cases.SMALL.get(mechanism, {}),
        **kwargs,
    }
    classifier = AudioClassifier(
        tiny.backbone(**kwargs), labels=list("abc"), chunk_s=0.15
    )
    return attention_cases.shaken(classifier, rng, by=0.3)


def wide(rng, **kwargs):
    """Layers large enough for the converters to quantize."""
    return model(
        rng, hidden_dim=48, key_dim=32, intermediate_dims=(512,), **kwargs
    )


def assert_equal(classifier, runtime, rng):
    for samples, lengths in LENGTHS:
        x = rng.standard_normal((len(lengths), samples)).astype("float32")
        lengths = np.array(lengths, "int32")
        found = runtime({"waveform": x, "lengths": lengths})
        real = np.where(lengths < 0, samples, lengths)
        expected = classifier({"waveform": x, "lengths": real})
        np.testing.assert_allclose(found, expected, atol=base.TOLERANCE)
    silence = np.zeros((2, 131), "float32")
    np.testing.assert_allclose(
        runtime(silence), classifier(silence), atol=base.TOLERANCE
    )
    assert runtime(silence[:0]).shape == (0, 3)
    padding = {"waveform": silence[:, :1], "lengths": np.zeros(2, "int32")}
    np.testing.assert_allclose(
        runtime(silence[:, :0]), classifier(padding), atol=base.TOLERANCE
    )


@every_file
@pytest.mark.parametrize("name", attention.ATTENTIONS)
def test_every_attention_scores_equally(name, format, rng, tmp_path):
    classifier = model(rng, attention=name)
    path = formats.convert(classifier, tmp_path / "model", format)
    assert_equal(classifier, formats.load(path), rng)


@every_file
@pytest.mark.parametrize(
    "kwargs",
    [
        {"activation": "gelu"},
        {"num_layers": 2, "pool_every": 1, "pool_size": 3, "pool_strides": 2},
        {"num_layers": 2, "pool_every": 1, "pool_kind": "max"},
        {"num_layers": 2, "multiscale": "block"},
        {"num_layers": 2, "multiscale": "causal"},
    ],
    ids=str,
)
def test_every_layer_scores_equally(kwargs, format, rng, tmp_path):
    classifier = model(rng, **kwargs)
    path = formats.convert(classifier, tmp_path / "model", format)
    assert_equal(classifier, formats.load(path), rng)


@every_file
@pytest.mark.parametrize("name", backbone_cases.WAVEFORM)
def test_every_backbone_scores_equally(name, format, rng, tmp_path):
    classifier = AudioClassifier(
        backbone_cases.SMALL[name](), labels=list("abc"), chunk_s=None
    )
    if (format, name) == ("litert", "crnn"):
        # Of a loop over frames, it takes no lists of unknown batch.
        with pytest.raises(RuntimeError, match="litert does not convert"):
            formats.convert(classifier, tmp_path / "model", format)
        assert list(tmp_path.iterdir()) == []
        return
    path = formats.convert(classifier, tmp_path / "model", format)
    assert_equal(classifier, formats.load(path), rng)


@pytest.mark.slow
@every_file
@pytest.mark.parametrize(
    "name, kwargs",
    [
        (name, {"causal": False})
        for name in attention.ATTENTIONS
        if attention.find(name).supports_causal
    ]
    + [
        (name, {"literal_mask": True, **attention_cases.SMALL[name]})
        for name in ("sparse_strided", "sparse_fixed", "xbox")
    ],
    ids=str,
)
def test_other_arguments_score_equally(name, kwargs, format, rng, tmp_path):
    if "literal_mask" in kwargs:
        kwargs = {"attention_kwargs": kwargs}
    classifier = model(rng, attention=name, **kwargs)
    path = formats.convert(classifier, tmp_path / "model", format)
    assert_equal(classifier, formats.load(path), rng)


def converts_another_model(**kwargs):
    """A `convert` of LiteRT's whose weights are those of another model."""
    other = model(np.random.default_rng(1), **kwargs)
    convert = formats.FORMATS["litert"].convert

    def write(folder, path, quantize):
        signatures.write_scores(other, folder / "other")
        convert(folder / "other", path, quantize)

    return write


@every_file
def test_labels_and_rate_travel_along(format, rng, tmp_path):
    path = formats.convert(model(rng), tmp_path / "sub" / "m.1", format)
    assert path.name == "m.1" + formats.FORMATS[format].suffix
    runtime = formats.load(path)
    assert runtime.labels == ["a", "b", "c"] and runtime.num_classes == 3
    assert runtime.sample_rate_hz == 1100 and runtime.chunk_s == 0.15
    files = {path.name, path.name + ".json"}
    if format == "openvino":
        files.add("m.1.bin")
    assert {file.name for file in path.parent.iterdir()} == files


def test_a_file_that_does_not_work_is_not_left(rng, tmp_path, monkeypatch):
    """Converters may write what no runtime takes, or other scores."""
    classifier = model(rng)

    def broken(folder, path, quantize):
        path.write_bytes(b"no model")

    def failing(folder, path, quantize):
        path.write_bytes(b"half a model")
        raise KeyError("an operation\nand a hundred lines more")

    for convert, message in (
        (broken, "does not work"),
        (converts_another_model(), "differ by"),
        (failing, "litert does not convert.* KeyError: 'an operation"),
    ):
        monkeypatch.setattr(formats.FORMATS["litert"], "convert", convert)
        with pytest.raises(RuntimeError, match=message):
            formats.convert(classifier, tmp_path / "model", "litert")
        assert list(tmp_path.iterdir()) == []


def test_a_missing_converter_names_the_extra(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(
        formats.FORMATS["onnx"], "packages", ("no_such_package",)
    )
    with pytest.raises(ImportError, match=r"audio_tf\[formats\]"):
        formats.convert(model(rng), tmp_path / "model", "onnx")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("torch",), "`format` must be one of"),
        (("onxx",), "did you mean 'onnx'"),
        (("onnx", "int4"), "`quantize` must be None or one of"),
        (("openvino", "int8"), "openvino cannot be int8"),
    ],
)
def test_what_cannot_be_is_named(arguments, message, rng, tmp_path):
    with pytest.raises(ValueError, match=message):
        formats.convert(model(rng), tmp_path, *arguments)
    with pytest.raises(ValueError, match="must end with one of"):
        formats.load("model.pt")


def test_a_folded_table_is_refused_where_it_fails(rng, tmp_path):
    classifier = model(rng, attention="random_synthesizer")
    attention.fold(classifier)
    with pytest.raises(ValueError, match="to openvino: .* convert the"):
        formats.convert(classifier, tmp_path / "model", "openvino")
    path = formats.convert(classifier, tmp_path / "model", "litert")
    assert_equal(classifier, formats.load(path), rng)


@pytest.mark.parametrize(
    "format, quantize",
    [
        ("savedmodel", "int8"),
        ("onnx", "int8"),
        ("onnx", "dynamic"),
        ("litert", "dynamic"),
    ],
)
def test_quantized_scores_are_near(format, quantize, rng, tmp_path):
    classifier = wide(rng)
    before = classifier.get_weights()
    path = formats.convert(classifier, tmp_path / "q", format, quantize)
    if quantize == "dynamic":
        # Keras' int8 takes more nodes than it saves in so small a model.
        whole = formats.convert(classifier, tmp_path / "whole", format)
        assert verify.size_mb(path) < verify.size_mb(whole)
    runtime = formats.load(path)
    x = 0.1 * rng.standard_normal((3, 187)).astype("float32")
    difference = np.abs(np.asarray(runtime(x)) - np.asarray(classifier(x)))
    # Not equal, else nothing was quantized.
    assert 1e-5 < difference.max() < 0.1
    for old, new in zip(before, classifier.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("format", ["onnx", "litert"])
@pytest.mark.parametrize(
    "kwargs",
    [
        {"attention": "hybrid_local", "num_layers": 2},
        {"attention": "dense_synthesizer_per_head"},
    ],
    ids=str,
)
def test_kernels_by_head_are_quantized_or_left_alone(
    kwargs, format, rng, tmp_path
):
    classifier = wide(rng, **kwargs)
    path = formats.convert(classifier, tmp_path / "q", format, "dynamic")
    x = 0.1 * rng.standard_normal((3, 187)).astype("float32")
    difference = np.abs(formats.load(path)(x) - np.asarray(classifier(x)))
    assert 1e-5 < difference.max() < 0.1


@pytest.mark.parametrize("format", ["onnx", "litert"])
def test_what_a_logarithm_hears_keeps_its_precision(format, rng, tmp_path):
    """A loud tone hides the soft bands from steps of its own size."""
    classifier = wide(
        rng,
        filterbank="log_mel",
        sample_rate_hz=8_000,
        window_s=0.032,
        frontend_filters=24,
    )
    path = formats.convert(classifier, tmp_path / "q", format, "dynamic")
    x = 1e-3 * rng.standard_normal((4, 4_000)).astype("float32")
    x += np.sin(0.3 * np.arange(4_000)).astype("float32")
    difference = np.abs(formats.load(path)(x) - np.asarray(classifier(x)))
    assert 1e-5 < difference.max() < 0.03


def test_the_report_finds_other_scores(rng, tmp_path):
    """A fault in one file alone: weights that are not the model's."""
    classifier = model(rng)
    other = model(np.random.default_rng(1))
    files = {
        "litert": formats.convert(classifier, tmp_path / "good", "litert"),
        "onnx": formats.convert(other, tmp_path / "bad", "onnx"),
    }
    clips = [rng.standard_normal(n).astype("float32") for n in (131, 60)]
    rows = verify.verify(classifier, files, clips, rounds=3, calls=2)
    assert [row.name for row in rows] == ["tensorflow", "litert", "onnx"]
    assert [row.passed for row in rows] == [True, True, False]
    assert all(row.latency_ms > 0 and row.ratio > 0 for row in rows)
    assert rows[0].ratio == 1.0 and rows[1].size_mb > 0
    good, bad = verify.format_rows(rows).splitlines()[3:]
    assert "equal" in good and "DIFFERS" in bad

    found = [np.full((1, 3), np.nan)]
    row = verify.compared("onnx", found, [np.ones((1, 3))], None)
    assert not row.passed


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """A preset at 8 kHz, and a folder of labelled clips."""
    top = tmp_path_factory.mktemp("preset")
    rng = np.random.default_rng(5)
    classifier = AudioClassifier(
        tiny.backbone(sample_rate_hz=8_000, hidden_dim=48),
        labels=list("abc"),
        chunk_s=0.25,
    )
    classifier.save_to_preset(str(top / "preset"))
    for label in classifier.labels:
        folder = top / "clips" / "test" / label
        folder.mkdir(parents=True)
        for number in range(2):
            audio = 0.1 * rng.standard_normal(4_000)
            soundfile.write(folder / f"{number}.wav", audio, 8_000)
            for split in ("train", "val"):
                other = top / "clips" / split / label
                other.mkdir(parents=True, exist_ok=True)
                soundfile.write(other / f"{number}.wav", audio, 8_000)
    return top


def test_export_reports_on_all_formats(preset, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("AUDIO_TF_CACHE", str(tmp_path / "cache"))
    arguments = ["export", str(tmp_path), "--model", str(preset / "preset")]
    arguments += ["--format", "savedmodel,onnx", "--format", "litert,openvino"]
    arguments += ["--quantize", "dynamic", "--verify", "--explain"]
    arguments += ["--dataset", "folders", "--data-dir", str(preset / "clips")]
    assert cli.main(arguments) == 0
    captured = capsys.readouterr()
    printed = captured.out
    for line in ("1", "model.onnx", "model.tflite", "model.xml"):
        assert f"{tmp_path / line}\n" in printed
    for line in ("model_dynamic.onnx", "model_dynamic.tflite"):
        assert f"{tmp_path / line}\n" in printed
    assert "openvino is not quantized by dynamic: " in captured.err
    table = [line for line in printed.splitlines() if line.startswith("| ")]
    assert len(printed.splitlines()) == 6 + len(table)
    assert [line.split(" | ")[0].strip("| ") for line in table[2:]] == [
        "tensorflow",
        "savedmodel",
        "onnx",
        "litert",
        "openvino",
        "onnx dynamic",
        "litert dynamic",
    ]
    assert "accuracy" in table[0] and "mAP" in table[0]
    assert all("equal" in line for line in table[2:7])
    explained = [line.split(" | ")[-2] for line in table[2:]]
    assert float(explained[1]) <= 1e-5
    assert not any([explained[0], *explained[2:]])

    clip = preset / "clips" / "test" / "a" / "0.wav"
    ranked = {}
    for file in ("model.onnx", "model.tflite", "model.xml", "1"):
        classify = ["classify", str(clip), "--json"]
        assert cli.main([*classify, "--model", str(tmp_path / file)]) == 0
        ranked[file] = json.loads(capsys.readouterr().out)["scores"]
    for scores in ranked.values():
        assert scores == pytest.approx(ranked["1"], abs=1e-5)


def test_export_fails_where_scores_differ(
    preset, tmp_path, capsys, monkeypatch
):
    litert = formats.FORMATS["litert"]
    monkeypatch.setattr(
        litert, "convert", converts_another_model(sample_rate_hz=8_000)
    )
    # As if the fault did not show in the converter's own trial.
    monkeypatch.setattr(litert, "try_out", lambda *arguments: None)
    clip = preset / "clips" / "test" / "a" / "0.wav"
    arguments = ["export", str(tmp_path), "--model", str(preset / "preset")]
    arguments += ["--format", "litert", "--verify", "--clips", str(clip)]
    assert cli.main(arguments) == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_export_names_a_missing_format_before_it_writes(
    preset, tmp_path, capsys
):
    arguments = ["export", str(tmp_path / "out"), "--format", "onnx,tensorrt"]
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments, "--model", str(preset / "preset")])
    assert ended.value.code == 2
    assert "tensorrt" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_savedmodel_is_one_of_the_formats(rng, tmp_path):
    path = formats.convert(model(rng), tmp_path)
    assert path == tmp_path / "1"
    assert isinstance(formats.load(tmp_path), export.ExportedClassifier)
