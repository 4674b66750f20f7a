"""The client against servers of ours, over HTTP and gRPC on loopback."""

import io
import itertools
import json

import keras
import numpy as np
import pytest
import soundfile
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip("an export is TensorFlow's", allow_module_level=True)

import grpc

from audio_tf import client, data
from audio_tf import export as audio_export
from audio_tf.client import query, transport
from audio_tf.data import wav
from audio_tf.models import AudioClassifier
from serving import grpc_server, rest_server, served

LABELS = ["dog", "rain", "siren"]
KINDS = ["rest", "grpc"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A version's folder."""
    backbone = tiny.backbone(sample_rate_hz=8_000)
    classifier = AudioClassifier(backbone, labels=LABELS, chunk_s=0.5)
    top = tmp_path_factory.mktemp("served")
    return audio_export.export(classifier, top / "audio_tf")


@pytest.fixture(scope="module")
def model(folder):
    return served.Served(folder)


@pytest.fixture
def rest(model):
    server = rest_server.RestServer(model)
    yield server
    server.stop()


@pytest.fixture
def rpc(model):
    """A service, with its `url`."""
    service = grpc_server.PredictionService(model, transport.MODEL_NAME)
    server, port = grpc_server.start(service)
    service.url = f"grpc://127.0.0.1:{port}"
    yield service
    server.stop(0).wait()


@pytest.fixture
def pauses(monkeypatch):
    """The pauses between attempts, which are not made."""
    made = []
    monkeypatch.setattr(query.time, "sleep", made.append)
    return made


def wav_bytes(samples, rate_hz=8_000, seed=0, **kwargs):
    audio = np.random.default_rng(seed).uniform(-0.5, 0.5, samples)
    file = io.BytesIO()
    soundfile.write(file, audio, rate_hz, **{"format": "WAV", **kwargs})
    return file.getvalue()


def scores_of(model, content):
    outputs = model.run("serving_audio_bytes", {"audio_bytes": [content]})
    assert outputs["valid"][0]
    return outputs["scores"][0]


def ask(url, files, **kwargs):
    batch_size = kwargs.pop("batch_size", 8)
    with client.Client(url, **kwargs) as asked:
        return list(asked.query(files, batch_size=batch_size))


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_models(kind, rest, rpc, model):
    url = {"rest": rest, "grpc": rpc}[kind].url
    clips = [wav_bytes(n, seed=n) for n in (8_001, 3_000, 131, 13_007, 4_000)]
    clips.insert(2, b"no sound")
    clips.insert(4, b"")
    results = ask(url, clips, batch_size=3)
    assert [result.file for result in results] == [
        f"clip {number}" for number in range(1, 8)
    ]
    assert [result.valid for result in results] == [1, 1, 0, 1, 0, 1, 1]
    for result, content in zip(results, clips, strict=True):
        if result.valid:
            expected = scores_of(model, content)
            np.testing.assert_allclose(result.scores, expected, atol=1e-5)
            assert result.scores.dtype == np.float32 and result.error is None
        else:
            outputs = model.run(query.SIGNATURE, {"audio_bytes": [content]})
            assert result.error == wav.ERRORS[outputs["error"][0]]
            assert result.scores is None


@pytest.mark.parametrize("kind", KINDS)
def test_any_file_that_is_read_can_be_asked_for(
    kind, rest, rpc, model, tmp_path
):
    """FLAC and Ogg go as float32 WAV, at their own rate, without loss."""
    url = {"rest": rest, "grpc": rpc}[kind].url
    audio = np.random.default_rng(1).uniform(-0.5, 0.5, (11_025, 2))
    files, expected = [], []
    for name in ("a.flac", "b.ogg", "c.wav", "d.aiff"):
        files.append(tmp_path / name)
        soundfile.write(files[-1], audio, 11_025)
        samples, rate_hz = data.read_audio(files[-1])
        content = io.BytesIO()
        soundfile.write(content, samples, rate_hz, "FLOAT", format="WAV")
        expected.append(scores_of(model, content.getvalue()))
    for result, scores, file in zip(
        ask(url, files), expected, files, strict=True
    ):
        assert result.file == str(file)
        np.testing.assert_allclose(result.scores, scores, atol=1e-5)


def test_formats_that_the_server_cannot_read_are_decoded_here(tmp_path):
    assert query.SERVED_FORMATS == {
        wav.PCM,
        wav.FLOAT,
        wav.A_LAW,
        wav.MU_LAW,
        wav.EXTENSIBLE,
    }
    for subtype, kept in (
        ("PCM_16", True),
        ("PCM_24", True),
        ("FLOAT", True),
        ("ULAW", True),
        ("MS_ADPCM", False),
        ("IMA_ADPCM", False),
    ):
        file = tmp_path / f"{subtype}.wav"
        file.write_bytes(wav_bytes(800, subtype=subtype))
        content, error = query.read_wav(file)
        assert error is None
        assert (content == file.read_bytes()) == kept, subtype
        audio, rate_hz = soundfile.read(io.BytesIO(content), dtype="float32")
        samples, _ = data.read_audio(file)
        np.testing.assert_array_equal(audio, samples)
        assert rate_hz == 8_000


def test_a_bad_file_leaves_the_others_alone(rest, tmp_path):
    good, flac = tmp_path / "good.wav", tmp_path / "cut.flac"
    good.write_bytes(wav_bytes(8_000))
    flac.write_bytes(wav_bytes(8_000, format="FLAC")[:900])
    lost, folder = tmp_path / "lost.wav", tmp_path
    results = ask(rest.url, [lost, good, flac, folder, good])
    assert [result.valid for result in results] == [0, 1, 0, 0, 1]
    assert results[0].error == results[3].error == "no such file"
    assert "not readable" in results[2].error or "cut" in results[2].error
    ((_, request),) = rest.requests
    assert len(request["inputs"]["audio_bytes"]) == 2


def test_nothing_is_sent_for_files_that_are_not_there(rest, tmp_path):
    (result,) = ask(rest.url, [tmp_path / "lost.wav"])
    assert not result.valid and rest.requests == []


def test_long_clips_go_in_smaller_batches(rest, monkeypatch):
    clips = [wav_bytes(n) for n in (100, 200, 4_000, 300, 400)]
    monkeypatch.setattr(query, "MAX_BATCH_BYTES", 8_000)
    assert all(result.valid for result in ask(rest.url, clips))
    sizes = [len(body["inputs"]["audio_bytes"]) for _, body in rest.requests]
    assert sizes == [3, 2]


@pytest.mark.parametrize("status", sorted(transport.TRANSIENT_STATUSES))
def test_a_busy_server_is_asked_again(status, rest, pauses):
    rest.answers = [(status, b'{"error": "busy"}')] * 2
    (result,) = ask(rest.url, [wav_bytes(800)])
    assert result.valid
    assert len(rest.requests) == 3 and len(pauses) == 2
    assert rest.requests[0] == rest.requests[2]


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_a_refusal_is_final(status, rest, pauses):
    rest.answers = [(status, b'{"error": "not so"}')]
    clips = [wav_bytes(800)] * 3
    results = ask(rest.url, clips, batch_size=2)
    assert [result.valid for result in results] == [0, 0, 1]
    assert results[0].error == (
        f"{rest.url}/v1/models/audio_tf: status {status}, not so"
    )
    assert len(rest.requests) == 2 and pauses == []


def test_pauses_double_and_vary(rest, pauses):
    rest.answers = [(503, b"")] * 10
    (result,) = ask(rest.url, [wav_bytes(800)], retries=7, backoff_s=1.0)
    assert "status 503" in result.error and "8 attempts" in result.error
    assert len(rest.requests) == 8
    limits = [min(query.MAX_PAUSE_S, 2**n) for n in range(7)]
    assert all(
        limit / 2 <= pause <= limit
        for pause, limit in zip(pauses, limits, strict=True)
    )
    assert len({p / m for p, m in zip(pauses, limits, strict=True)}) > 1


def test_no_attempt_begins_after_the_deadline(rest, pauses):
    rest.answers = [(503, b"")] * 10
    (result,) = ask(rest.url, [wav_bytes(800)], deadline_s=0.5, backoff_s=9.0)
    assert "1 attempts" in result.error
    assert len(rest.requests) == 1 and pauses == []


def test_a_silent_server_times_out(rest, pauses):
    rest.answers = [None] * 2
    (result,) = ask(
        rest.url, [wav_bytes(800)], timeout_s=0.3, retries=1, deadline_s=60
    )
    assert "timed out" in result.error and "2 attempts" in result.error
    assert rest.url in result.error


def test_a_dripping_server_times_out():
    class Drip:
        def read1(self, size):
            return b"x"

    with pytest.raises(TimeoutError):
        transport.read_until(Drip(), end=0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_is_down_is_named(kind, pauses):
    server = rest_server.RestServer()
    server.stop()
    url = server.url.replace("http", "grpc") if kind == "grpc" else server.url
    clips = [wav_bytes(800)] * 4
    results = ask(url, clips, batch_size=1, retries=2, timeout_s=5.0)
    assert not any(result.valid for result in results)
    for result in results[:2]:
        assert f"{url}/v1/models/audio_tf: " in result.error
        assert "3 attempts" in result.error
    # The rest is not waited for.
    for result in results[2:]:
        assert "not asked" in result.error
    assert len(pauses) == 4


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>welcome</html>",
        b"{",
        b"[]",
        b'{"predictions": []}',
        b'{"outputs": {"scores": [[0.5], [0.5, 0.5]]}}',
        b'{"outputs": {"scores": [[0.5], [0.5]]}}',
        b'{"outputs": {"scores": [0.5]}}',
        b'{"outputs": {"scores": [[0.5]], "valid": []}}',
        b'{"outputs": {"scores": [[0.5]], "valid": [true], "error": [0, 0]}}',
        b'{"outputs": {"embedding": [[0.5]]}}',
        b'{"outputs": {"scores": [["high"]]}}',
    ],
)
def test_a_strange_answer_is_an_error(answer, rest, pauses):
    rest.answers = [(200, answer)]
    (result,) = ask(rest.url, [wav_bytes(800)])
    assert not result.valid and rest.url in result.error
    assert "Received: " in result.error
    assert pauses == []


def test_a_signature_may_give_scores_alone(rest):
    rest.answers = [(200, b'{"outputs": [[0.25, 0.75]]}')]
    (result,) = ask(rest.url, [wav_bytes(800)])
    assert result.valid and result.scores.tolist() == [0.25, 0.75]


def test_the_url_names_model_and_version(rest, rpc):
    rest.answers = [(200, b'{"outputs": [[0.5]]}')] * 3
    top = f"{rest.url}/v1/models"
    ask(rest.url, [b"x"], model_name="birds")
    ask(f"{top}/birds", [b"x"])
    ask(f"{top}/birds/versions/7:predict", [b"x"])
    assert [path for path, _ in rest.requests] == [
        "/v1/models/birds:predict",
        "/v1/models/birds:predict",
        "/v1/models/birds/versions/7:predict",
    ]
    ask(f"{rpc.url}/v1/models/audio_tf/versions/7", [b"x"])
    (request,) = rpc.requests
    assert request.model_spec.version.value == 7


@pytest.mark.parametrize(
    "url, model_name",
    [
        ("127.0.0.1:8501", None),
        ("ftp://127.0.0.1:8501", None),
        ("http://", None),
        ("http://127.0.0.1:many", None),
        ("http://127.0.0.1:8501/v1/models/birds", "dogs"),
        ("grpc://127.0.0.1:8500/behind/a/proxy", None),
    ],
)
def test_a_wrong_url_is_refused(url, model_name):
    with pytest.raises(ValueError, match="Received: "):
        client.Client(url, model_name)


@pytest.mark.parametrize("code", sorted(transport.TRANSIENT_CODES))
def test_grpc_asks_again(code, rpc, pauses):
    rpc.failures = [getattr(grpc.StatusCode, code)] * 2
    (result,) = ask(rpc.url, [wav_bytes(800)])
    assert result.valid and len(rpc.requests) == 3 and len(pauses) == 2


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "INTERNAL"])
def test_a_refusal_of_grpc_is_final(code, rpc, pauses):
    rpc.failures = [getattr(grpc.StatusCode, code)]
    (result,) = ask(rpc.url, [wav_bytes(800)])
    assert f"{code}, as the test asked" in result.error
    assert len(rpc.requests) == 1 and pauses == []


def test_grpc_names_a_model_and_signature_that_are_not_there(rpc):
    (result,) = ask(rpc.url, [b"x"], model_name="birds")
    assert "NOT_FOUND" in result.error and "/v1/models/birds" in result.error
    with client.Client(rpc.url) as asked:
        (result,) = asked.query([b"x"], signature="sing")
    assert "INVALID_ARGUMENT" in result.error and "sing" in result.error


def test_error_codes_have_texts(rest):
    codes = itertools.product([[[0.0]]], [[False]], [[1], [9], [-1]])
    names = ("scores", "valid", "error")
    rest.answers = [
        (
            200,
            json.dumps(
                {"outputs": dict(zip(names, values, strict=True))}
            ).encode(),
        )
        for values in codes
    ]
    results = ask(rest.url, [b"x"] * 3, batch_size=1, errors=["", "too short"])
    assert [result.error for result in results] == [
        "too short",
        "error 9 of the server",
        "error -1 of the server",
    ]


def test_labels_are_read(folder, tmp_path):
    labels, errors = client.read_labels(
        folder / "assets.extra" / "audio_tf.json"
    )
    assert labels == LABELS
    assert errors == [wav.ERRORS[code] for code in range(len(wav.ERRORS))]
    lines = tmp_path / "labels.txt"
    lines.write_text("\n".join(LABELS) + "\n")
    assert client.read_labels(lines) == (LABELS, None)
    lines = lines.with_suffix(".json")
    lines.write_text(json.dumps(LABELS))
    assert client.read_labels(lines) == (LABELS, None)
