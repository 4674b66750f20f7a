"""Every signature of an exported model against the model itself."""

import io

import keras
import numpy as np
import pytest
import serving_cases
import soundfile
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from audio_tf import attention, data
from audio_tf import export as audio_export
from audio_tf.audio import RESAMPLER, resample
from audio_tf.audio.graph_wav import ERRORS, WavError
from audio_tf.corpora import Corpus
from audio_tf.export import gate, streaming, warmup
from audio_tf.models import AudioClassifier, AudioTransformerBackbone

SIGNATURES = {"serving_default", "serving_audio_bytes", "embed", "frames"}
RATE_HZ = 1100


def classifier(chunk_s=0.25, silence_db=None, **kwargs):
    backbone = tiny.backbone(**{"num_layers": 1, **kwargs})
    return AudioClassifier(
        backbone, labels=list("abc"), chunk_s=chunk_s, silence_db=silence_db
    )


def exported(model, path, **kwargs):
    audio_export.export(model, path, **kwargs)
    return audio_export.ExportedClassifier(path)


def wav_file(audio, rate_hz=RATE_HZ, subtype="FLOAT"):
    file = io.BytesIO()
    soundfile.write(file, audio, rate_hz, subtype, format="WAV")
    return file.getvalue()


def noise(rng, samples, *shape):
    return 0.3 * rng.standard_normal((*shape, samples)).astype("float32")


def pipeline_scores(model, files, tmp_path):
    """Scores of WAV contents by the Python pipeline, from files on disk."""
    paths = []
    for index, contents in enumerate(files):
        paths.append(tmp_path / f"{index}.wav")
        paths[-1].write_bytes(contents)
    corpus = Corpus(paths, [[] for _ in paths], model.labels)
    clips = data.prepare(
        corpus, model.sample_rate_hz, tmp_path / "cache", progress=False
    )
    chunks = data.Chunks(clips, model.chunk_s, silence_db=model.silence_db)
    return data.score_clips(model, chunks, verbose=0)


def heard(file, model):
    """Samples of a file at the model's rate, by soundfile and scipy."""
    audio, rate_hz = soundfile.read(
        io.BytesIO(file), dtype="float32", always_2d=True
    )
    audio = audio.mean(axis=1, dtype="float32")
    return resample(audio, rate_hz, model.sample_rate_hz)


def expected_cases(model, inputs, clips):
    """Signature, inputs and outputs of each, from the Keras model alone."""
    features = model.backbone(inputs)
    frames = features["sequence_output"].numpy()
    mask = features["frame_mask"].numpy()
    embedding = [
        row[real].mean(axis=0) for row, real in zip(frames, mask, strict=True)
    ]
    kernel, bias = model.output_dense.get_weights()
    over_time = 1.0 / (1.0 + np.exp(-(frames @ kernel + bias)))
    whole = model.predict(inputs, verbose=0)
    size = round(model.chunk_s * model.sample_rate_hz)
    files = [wav_file(clip, *kind) for clip, kind in clips]
    # Shorter clips are repeated up to a chunk.
    chunks = np.stack([np.resize(heard(file, model), size) for file in files])
    refused = np.zeros((1, model.num_classes), "float32")
    scores = [refused, model.predict(chunks, verbose=0)]
    return {
        "serving_default": (inputs, {"scores": whole}),
        "embed": (inputs, {"embedding": np.array(embedding)}),
        "frames": (inputs, {"scores": over_time, "mask": mask}),
        "serving_audio_bytes": (
            {"audio_bytes": np.array([b"RIFF", *files], object)},
            {
                "scores": np.concatenate(scores),
                "valid": np.arange(len(files) + 1) > 0,
                "error": np.array([1] + [0] * len(files), "int32"),
            },
        ),
    }


def assert_served(cases, model, tmp_path, **kwargs):
    """All signatures from Python and, where it can be built, from C++."""
    folder = audio_export.export(model, tmp_path / "model", **kwargs)
    signatures = tf.saved_model.load(str(folder)).signatures
    assert set(signatures) == set(cases)
    for name, (inputs, outputs) in cases.items():
        found = signatures[name](**{k: tf.constant(inputs[k]) for k in inputs})
        assert set(found) == set(outputs)
        for key, expected in outputs.items():
            np.testing.assert_allclose(found[key], expected, atol=1e-5)
        serving_cases.write_case(
            tmp_path / "cases" / name, name, inputs, outputs
        )
    status, printed = serving_cases.run("check", folder, tmp_path / "cases")
    assert status == 0, printed


@pytest.mark.parametrize("mechanism", attention.ATTENTIONS)
def test_every_attention_is_served(mechanism, rng, tmp_path):
    model = classifier(attention=mechanism, made_for_frames=41)
    x = noise(rng, 283, 3)
    inputs = {"waveform": x, "lengths": np.array([283, 97, 1], "int32")}
    clips = [
        (x[0, :97], (RATE_HZ, "FLOAT")),
        (x[1, :281], (1_200, "PCM_24")),
        (x.T, (22_050, "ULAW")),
    ]
    cases = expected_cases(model, inputs, clips)
    np.testing.assert_array_equal(
        cases["frames"][1]["mask"].sum(axis=1), [26, 9, 1]
    )
    assert set(cases) == SIGNATURES
    assert_served(cases, model, tmp_path)


def test_a_stream_is_served(rng, tmp_path):
    model = classifier()
    inputs = {
        "waveform": noise(rng, 283, 1),
        "lengths": np.array([283], "int32"),
    }
    clips = [(inputs["waveform"][0, :97], (RATE_HZ, "FLOAT"))]
    cases = expected_cases(model, inputs, clips)
    step, _ = streaming.endpoint(model)
    piece, last = inputs["waveform"], np.array([False])
    begun = step(piece[:, :125], last, tf.zeros((1, 0)))["state"].numpy()
    cases["stream"] = (
        {"waveform": piece[:, 125:], "last": last, "state": begun},
        {
            # 11 samples make a frame, and the last one is not whole.
            "scores": cases["frames"][1]["scores"][:, 125 // 11 : 283 // 11],
            "state": step(piece[:, 125:], last, begun)["state"].numpy(),
        },
    )
    assert_served(cases, model, tmp_path, stream=True)


@pytest.mark.parametrize("size", AudioTransformerBackbone.sizes)
def test_every_size_is_served(size, rng, tmp_path):
    model = AudioClassifier.from_preset(size, labels=list("abc"))
    x = noise(rng, 16_001, 2)
    inputs = {"waveform": x, "lengths": np.array([16_001, 5_003], "int32")}
    clips = [
        (x[0, :7919], (8_000, "PCM_U8")),
        (x.T, (44_100, "PCM_16")),
        (x[1, :16_000], (16_000, "DOUBLE")),
    ]
    cases = expected_cases(model, inputs, clips)
    assert_served(cases, model, tmp_path)


@pytest.mark.parametrize(
    ("chunk_s", "silence_db"), [(0.25, None), (0.25, -20.0), (None, None)]
)
def test_bytes_score_as_the_pipeline(chunk_s, silence_db, rng, tmp_path):
    """Long, short, odd, stereo, silent in part, of several rates."""
    model = classifier(chunk_s, silence_db)
    served = exported(model, tmp_path / "model")
    fades = noise(rng, 1801) * (np.arange(1801) // 275 % 3 == 1)
    quiet = 0.001 * noise(rng, 700)
    files = [
        wav_file(noise(rng, 3001)),
        wav_file(noise(rng, 275)),
        wav_file(noise(rng, 276)),
        wav_file(noise(rng, 7)),
        wav_file(noise(rng, 5003), 8000, "PCM_16"),
        wav_file(noise(rng, 2, 4409), 44_100, "PCM_24"),
        wav_file(fades),
        wav_file(quiet),
    ]
    found = served.score_bytes(files)
    expected = pipeline_scores(model, files, tmp_path)
    assert found["valid"].numpy().all() and not found["error"].numpy().any()
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 1e-3
    for row, contents in enumerate(files):
        alone = served.score_bytes([contents])["scores"]
        np.testing.assert_allclose(alone[0], expected[row], atol=1e-5)


def test_silence_is_left_out(rng, tmp_path):
    """A clip of sound and silence scores as the sound does."""
    served = exported(classifier(silence_db=-40.0), tmp_path)
    sound = noise(rng, 275)
    padded = np.concatenate([sound, np.zeros(550, "float32")])
    scores = served.score_bytes([wav_file(sound), wav_file(padded)])["scores"]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-6)


def test_many_windows_are_scored_in_blocks(rng, tmp_path):
    model = classifier(chunk_s=0.02)
    served = exported(model, tmp_path / "model")
    files = [wav_file(noise(rng, n)) for n in (2003, 11, 1409, 22)]
    found = served.score_bytes(files)["scores"]
    expected = pipeline_scores(model, files, tmp_path)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("chunk_s", [0.25, None])
def test_a_bad_clip_leaves_the_others_alone(chunk_s, rng, tmp_path):
    served = exported(classifier(chunk_s), tmp_path, max_clip_s=3.0)
    good = wav_file(noise(rng, 500))
    bad = {
        b"": WavError.NOT_WAVE,
        good[:11]: WavError.NOT_WAVE,
        good[:300]: WavError.CUT_OFF,
        wav_file(np.zeros(3301, "float32")): WavError.TOO_LONG,
        wav_file(np.full(9, np.nan, "float32")): WavError.NOT_FINITE,
        wav_file(np.full(9, 3e38, "float32")): WavError.OVERFLOW,
    }
    alone = served.score_bytes([good])["scores"].numpy()[0]
    together = served.score_bytes([good, *bad, good])
    errors = [WavError.NONE, *bad.values(), WavError.NONE]
    np.testing.assert_array_equal(together["error"], errors)
    np.testing.assert_array_equal(
        together["valid"], np.array(errors) == WavError.NONE
    )
    scores = together["scores"].numpy()
    np.testing.assert_allclose(scores[[0, -1]], [alone, alone], atol=1e-6)
    assert not scores[1:-1].any()
    nothing = served.score_bytes(list(bad))
    assert not nothing["valid"].numpy().any()
    assert not nothing["scores"].numpy().any()
    assert served.score_bytes([])["scores"].shape == (0, 3)


def test_whole_clips_longer_than_a_table_are_refused(rng, tmp_path):
    model = classifier(
        None,
        attention="random_synthesizer",
        attention_kwargs={"max_length": 13},
        num_layers=2,
        pool_every=1,
    )
    served = exported(model, tmp_path)
    files = [wav_file(noise(rng, n)) for n in (13 * 11, 13 * 11 + 1)]
    found = served.score_bytes(files)
    np.testing.assert_array_equal(found["error"], [0, WavError.TOO_LONG])


def test_tables_are_folded_in_the_export_alone(rng, tmp_path):
    model = classifier(
        attention="random_synthesizer", attention_kwargs={"max_length": 31}
    )
    before = [weight.path for weight in model.weights]
    folder = audio_export.export(model, tmp_path)
    assert [weight.path for weight in model.weights] == before
    saved = tf.saved_model.load(str(folder)).signatures["serving_default"]
    operations = {
        node.op
        for function in saved.graph.as_graph_def().library.function
        for node in function.node_def
    }
    assert "MatMul" in operations or "BatchMatMulV2" in operations
    assert not operations & {"Softmax", "Exp"}


def test_provenance_and_errors_travel_along(tmp_path):
    served = exported(classifier(), tmp_path, provenance={"seed": 3})
    assert served.metadata["provenance"] == {"seed": 3}
    assert served.metadata["resampler"] == RESAMPLER
    assert (
        served.metadata["errors"][WavError.CUT_OFF] == ERRORS[WavError.CUT_OFF]
    )


@pytest.mark.parametrize("stream", [False, True])
def test_warm_up_replays_every_signature(stream, tmp_path):
    folder = audio_export.export(classifier(), tmp_path / "zoo", stream=stream)
    signatures = tf.saved_model.load(str(folder)).signatures
    replayed = []
    for record in tf.data.TFRecordDataset(str(folder / warmup.REQUESTS)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        assert request.model_spec.name == "zoo"
        name = request.model_spec.signature_name
        inputs = {
            key: tf.constant(tf.make_ndarray(value))
            for key, value in request.inputs.items()
        }
        batch = len(next(iter(inputs.values())))
        outputs = signatures[name](**inputs)
        assert len(outputs.get("scores", outputs.get("embedding"))) == batch
        if name == "serving_audio_bytes":
            assert outputs["valid"].numpy().all()
        replayed.append((name, batch))
    names = SIGNATURES | ({"stream"} if stream else set())
    expected = [(name, 1) for name in names] + [("serving_audio_bytes", 8)]
    assert sorted(replayed) == sorted(expected)


def test_weights_are_all_there_is(tmp_path):
    model = AudioClassifier.from_preset(
        "audio_transformer_small", num_classes=50
    )
    folder = audio_export.export(model, tmp_path)
    graph = (folder / "saved_model.pb").stat().st_size
    variables = sum(
        file.stat().st_size for file in (folder / "variables").iterdir()
    )
    weights = sum(int(np.prod(w.shape)) for w in model.weights) * 4
    assert weights < variables < 1.02 * weights
    assert graph < 0.21 * weights


def test_what_a_server_would_refuse_is_not_exported(tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "problems", lambda folder: ["a fault"])
    with pytest.raises(ValueError, match="a fault"):
        audio_export.export(classifier(), tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert audio_export.export(classifier(), tmp_path, check=False).is_dir()
