"""The client against servers of ours, over HTTP and gRPC on loopback."""

import base64
import concurrent.futures
import contextlib
import io
import itertools
import json
import pathlib
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("an export is TensorFlow's", allow_module_level=True)

import grpc
import tensorflow as tf
import wav_cases
from tensorflow_serving.apis import predict_pb2

from audio_tf import client
from audio_tf.audio import read_audio, wav
from audio_tf.client import (
    address,
    connections,
    query,
    transport,
    wav_files,
)
from audio_tf.client import rest as rest_transport
from audio_tf.export import warmup
from serving import grpc_server, rest_server, served

LABELS = ["dog", "rain", "siren"]
KINDS = ["rest", "grpc"]


@pytest.fixture(scope="module")
def model(shared_export):
    return served.Served(shared_export.folder)


@pytest.fixture
def rest():
    server = rest_server.RestServer(served.Constant())
    yield server
    server.stop()


@pytest.fixture
def rpc():
    """A service, with its `url`."""
    service = grpc_server.PredictionService(
        served.Constant(), address.MODEL_NAME
    )
    server, port = grpc_server.start(service)
    service.url = f"grpc://127.0.0.1:{port}"
    yield service
    server.stop(0).wait()


class Clock:
    """Time that passes by sleeping, and by `tick` seconds with each look.

    Attributes:
        pauses: list of the seconds that were slept.
    """

    def __init__(self, tick=0.0):
        self.now = 0.0
        self.tick = tick
        self.pauses = []

    def monotonic(self):
        self.now += self.tick
        return self.now

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


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
    rest.model = rpc.model = model
    url = {"rest": rest, "grpc": rpc}[kind].url
    clips = [wav_bytes(n, seed=n) for n in (8_001, 3_000, 131, 13_007, 4_000)]
    clips.insert(2, b"no audio")
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


def test_threads_share_a_channel(rpc, monkeypatch):
    """One waits while another wants a channel for longer answers."""
    began, answered = threading.Event(), threading.Event()
    run = rpc.model.run

    def slow(name, inputs):
        if len(inputs["audio_bytes"]) == 1:
            began.set()
            assert answered.wait(30.0)
        return run(name, inputs)

    monkeypatch.setattr(rpc.model, "run", slow)
    with (
        client.Client(rpc.url, num_classes=3, retries=0) as asked,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(asked.predict, [b"a"])
        assert began.wait(30.0)
        try:
            assert len(asked.predict([b"a"] * 90)["scores"]) == 90
        finally:
            answered.set()
        assert len(first.result()["scores"]) == 1
        assert len(asked.predict([b"a"] * 2)["scores"]) == 2
        assert len(asked.transport.channels) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_any_file_that_is_read_can_be_asked_for(
    kind, rest, rpc, model, tmp_path
):
    """FLAC and Ogg go as float32 WAV, at their own rate, without loss."""
    rest.model = rpc.model = model
    url = {"rest": rest, "grpc": rpc}[kind].url
    audio = np.random.default_rng(1).uniform(-0.5, 0.5, (11_025, 2))
    files, expected = [], []
    for name in ("a.flac", "b.ogg", "c.wav", "d.aiff"):
        files.append(tmp_path / name)
        soundfile.write(files[-1], audio, 11_025)
        samples, rate_hz = read_audio(files[-1])
        content = io.BytesIO()
        soundfile.write(content, samples, rate_hz, "FLOAT", format="WAV")
        expected.append(scores_of(model, content.getvalue()))
    for result, scores, file in zip(
        ask(url, files), expected, files, strict=True
    ):
        assert result.file == str(file)
        np.testing.assert_allclose(result.scores, scores, atol=1e-5)


def test_formats_that_the_server_cannot_read_are_decoded_here(tmp_path):
    assert wav_files.SERVED_FORMATS == {
        wav.PCM,
        wav.FLOAT,
        wav.A_LAW,
        wav.MU_LAW,
    }
    assert wav_files.EXTENSIBLE == wav.EXTENSIBLE
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
        content, error = wav_files.read_wav(file)
        assert error is None
        assert (content == file.read_bytes()) == kept, subtype
        audio, rate_hz = soundfile.read(io.BytesIO(content), dtype="float32")
        samples, _ = read_audio(file)
        np.testing.assert_array_equal(audio, samples)
        assert rate_hz == 8_000


@pytest.mark.parametrize(
    "kwargs, kept",
    [
        ({"bits": 24, "align": 4}, False),
        ({"bits": 24, "align": 8, "channels": 2}, False),
        ({"tail": wav_cases.AMBISONIC_TAIL}, False),
        ({"tail": wav_cases.GUID_TAIL}, True),
        ({"bits": 24, "tail": wav_cases.GUID_TAIL}, True),
        ({"tag": wav_cases.FLOAT, "bits": 32}, True),
    ],
    ids=str,
)
def test_headers_that_the_server_refuses_are_decoded_here(kwargs, kept):
    """`test_known_differences` of the graph has these files, too."""
    # 24 bits in 4 bytes, and whole samples of all others.
    data = struct.pack("<6i", *(2**8 * each for each in range(-3, 3)))
    file = wav_cases.simple(data, **kwargs)
    content, error = wav_files.read_wav("a.wav", file)
    assert error is None and (content == file) == kept
    if not kept:
        audio, rate_hz = soundfile.read(io.BytesIO(content), dtype="float32")
        samples, expected_hz = read_audio("a.wav", file)
        np.testing.assert_array_equal(audio, samples)
        assert rate_hz == expected_hz


# Tells at its end which of the heavy packages it has imported.
ASK = """
import sys
from audio_tf import client

with client.Client(sys.argv[1]) as asked:
    for result in asked.query(sys.argv[2:]):
        print(result.valid, result.error)
print({"keras", "tensorflow"} & set(sys.modules))
"""


def test_files_are_scored_without_tensorflow(rest, tmp_path):
    """Decoded, sent, and their errors told."""
    codes = [0, int(wav.WavError.CUT_OFF)]
    rest.answers = [
        rest_answer(scores=[[0.5]] * 2, valid=[True, False], error=codes)
    ]
    files = [tmp_path / "a.flac", tmp_path / "b.wav"]
    files[0].write_bytes(wav_bytes(800, format="FLAC"))
    files[1].write_bytes(wav_bytes(800))
    done = subprocess.run(
        [sys.executable, "-c", ASK, rest.url, *files],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == ["True None", "False cut off", "set()"]


@pytest.mark.costly
def test_the_first_request_by_grpc_need_not_load_tensorflow():
    """That takes seconds, and its seconds may be few."""
    code = "import sys; from audio_tf import client\n"
    code += "print('tensorflow' in sys.modules)\n"
    code += "client.Client('grpc://127.0.0.1:1')\n"
    code += "print({*client.transport.PACKAGES} <= {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_a_bad_file_leaves_the_others_alone(rest, tmp_path):
    good, flac = tmp_path / "good.wav", tmp_path / "cut.flac"
    good.write_bytes(wav_bytes(8_000))
    flac.write_bytes(wav_bytes(8_000, format="FLAC")[:900])
    lost, folder = tmp_path / "lost.wav", tmp_path
    results = ask(rest.url, [lost, good, flac, folder, good])
    assert [result.valid for result in results] == [0, 1, 0, 0, 1]
    assert results[0].error == "no such file"
    assert results[3].error == "a folder, not a file"
    assert "not readable" in results[2].error or "cut" in results[2].error
    ((_, request),) = rest.requests
    assert len(request["inputs"]["audio_bytes"]) == 2


def test_nothing_is_sent_for_files_that_are_not_there(rest, tmp_path):
    (result,) = ask(rest.url, [tmp_path / "lost.wav"])
    assert not result.valid and rest.requests == []


def test_contents_are_those_of_a_path_however_it_is_written(rest):
    content = wav_bytes(4)
    with client.Client(rest.url) as asked:
        for file, key in (
            (pathlib.Path("no.wav"), "no.wav"),
            ("no.wav", pathlib.Path("no.wav")),
        ):
            (result,) = asked.query([file], contents={key: content})
            assert result.valid and result.file == "no.wav"


def test_long_clips_go_in_smaller_batches(rest, monkeypatch):
    """No two go together that a proxy takes one by one alone."""
    clips = [wav_bytes(n) for n in (100, 200, 4_000, 300, 400, 3_900)]
    most = 8_000
    monkeypatch.setattr(wav_files, "MAX_BATCH_BYTES", most)
    assert all(result.valid for result in ask(rest.url, clips))
    sent = [body["inputs"]["audio_bytes"] for _, body in rest.requests]
    assert [len(batch) for batch in sent] == [2, 1, 2, 1]
    for batch in sent:
        sizes = [len(base64.b64decode(clip["b64"])) for clip in batch]
        assert len(sizes) == 1 or sum(sizes) <= most


def test_a_full_batch_waits_for_no_further_file(rest):
    """Files may come one by one, as they are recorded."""
    come = []

    def files():
        for number in range(4):
            come.append(number)
            yield wav_bytes(100)

    with client.Client(rest.url) as asked:
        results = asked.query(files(), batch_size=2)
        assert next(results).valid and come == [0, 1]


@pytest.mark.parametrize("status", sorted(rest_transport.TRANSIENT_STATUSES))
def test_a_busy_server_is_asked_again(status, rest, clock):
    rest.answers = [(status, b'{"error": "busy"}')] * 2
    (result,) = ask(rest.url, [wav_bytes(800)], clock=clock)
    assert result.valid
    assert len(rest.requests) == 3 and len(clock.pauses) == 2
    assert rest.requests[0] == rest.requests[2]


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_a_refusal_is_final(status, rest, clock):
    rest.answers = [(status, b'{"error": "not so"}')]
    clips = [wav_bytes(800)] * 3
    results = ask(rest.url, clips, batch_size=2, clock=clock)
    assert [result.valid for result in results] == [0, 0, 1]
    assert results[0].error == (
        f"{rest.url}/v1/models/audio_tf: status {status}, not so"
    )
    assert len(rest.requests) == 2 and clock.pauses == []


def test_a_server_that_refuses_is_there(rest, clock):
    """Between two batches that found it busy, it shows that it answers."""
    rest.answers = [(503, b""), (400, b""), (503, b"")]
    clips = [wav_bytes(800)] * 4
    results = ask(rest.url, clips, batch_size=1, retries=0, clock=clock)
    assert [result.valid for result in results] == [0, 0, 0, 1]


def test_pauses_double_and_vary(rest, clock):
    rest.answers = [(503, b"")] * 10
    (result,) = ask(
        rest.url, [wav_bytes(800)], retries=7, backoff_s=1.0, clock=clock
    )
    assert "status 503" in result.error and "8 attempts" in result.error
    assert len(rest.requests) == 8
    limits = [min(query.MAX_PAUSE_S, 2**n) for n in range(7)]
    assert all(
        limit / 2 <= pause <= limit
        for pause, limit in zip(clock.pauses, limits, strict=True)
    )
    assert len({p / m for p, m in zip(clock.pauses, limits, strict=True)}) > 1


def test_no_attempt_begins_after_the_deadline(rest, clock, monkeypatch):
    monkeypatch.setattr(query, "MAX_PAUSE_S", 1_000.0)
    rest.answers = [(503, b"")] * 10
    clips = [wav_bytes(800)]
    (result,) = ask(rest.url, clips, backoff_s=1_000.0, clock=clock)
    assert "1 attempts" in result.error
    assert len(rest.requests) == 1 and clock.pauses == []


def test_a_silent_server_times_out(rest, clock):
    """By the timeout of the socket itself: nothing ever comes."""
    rest.answers = [None] * 2
    (result,) = ask(
        rest.url,
        [wav_bytes(800)],
        timeout_s=0.3,
        retries=1,
        deadline_s=60.0,
        clock=clock,
    )
    assert "timed out" in result.error and "2 attempts" in result.error
    assert rest.url in result.error


@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"]
)
def test_a_dripping_server_times_out(sent):
    """It sends a byte for every second: of the headers, or of the body."""

    class Drip(io.RawIOBase):
        left = list(sent) + 10_000 * [ord("x")]

        def readable(self):
            return True

        def readinto(self, buffer):
            buffer[0] = self.left.pop(0)
            return 1

    class Socket:
        timeouts = []
        settimeout = timeouts.append

        def makefile(self, mode):
            return io.BufferedReader(Drip())

    response = connections.ResponseUntil(
        Socket(), method="POST", clock=Clock(tick=1.0), end=100.0
    )
    with pytest.raises(TimeoutError):
        response.begin()
        rest_transport.read_at_most(response, limit=10**6)
    assert Socket.timeouts == [100.0 - n for n in range(1, 100)]


def test_headers_of_a_server_that_drips_are_not_waited_for():
    """As above, by a connection; the time is that of sockets."""
    gone = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip():
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not gone.wait(0.01):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        (result,) = ask(url, [b"x"], timeout_s=0.3, retries=0)
        gone.set()
        thread.join()
    assert "timed out" in result.error


def test_https_is_spoken_to_https(rest, clock):
    url = rest.url.replace("http", "https")
    (result,) = ask(url, [b"x"], clock=clock)
    assert "SSL" in result.error and "no TLS" in result.error
    assert rest.requests == [] and clock.pauses == []


def unknown_name(*asked, **also):
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def no_server_of_names(*asked, **also):
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure")


def of_nobody(*asked, **also):
    raise ssl.SSLCertVerificationError(1, "self-signed certificate")


@pytest.mark.parametrize(
    ("connect", "told", "asked_again"),
    [
        (unknown_name, "no host of that name .*Name or service", False),
        (no_server_of_names, r"Temporary failure \(3 attempts\)$", True),
        (of_nobody, "not trusted .*self-signed", False),
    ],
)
def test_what_no_pause_mends_is_not_asked_again(
    connect, told, asked_again, clock, monkeypatch
):
    monkeypatch.setattr(socket, "create_connection", connect)
    results = ask(
        "https://no-such-host.invalid",
        [wav_bytes(800)] * 3,
        batch_size=1,
        retries=2,
        clock=clock,
    )
    for result in results[:2]:
        assert re.search(told, result.error), result.error
    assert len(clock.pauses) == (4 if asked_again else 0)
    # The rest is not waited for.
    assert "not asked" in results[2].error


@pytest.mark.parametrize("status", [413, 503])
def test_a_refusal_before_all_was_sent_is_read(status, clock):
    """As of a proxy that reads no body which is too large for it."""
    attempts = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse():
            for _ in range(2 if status == 503 else 1):
                connection, _ = server.accept()
                with connection:
                    attempts.append(connection.recv(2**10))
                    connection.sendall(
                        b"HTTP/1.1 %d No\r\nContent-Length: 8\r\n\r\ntoo much"
                        % status
                    )
            server.close()

        thread = threading.Thread(target=refuse)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        # More than the buffers of sockets hold.
        (result,) = ask(url, [bytes(2**24)], retries=1, clock=clock)
        thread.join()
    assert f"status {status}, too much" in result.error
    assert len(attempts) == (2 if status == 503 else 1)


def test_an_endless_body_is_left():
    class Endless:
        taken = 0

        def read1(self, size):
            self.taken += size
            assert self.taken < 2**20
            return b"x" * size

    body = rest_transport.read_at_most(Endless(), limit=10**5)
    assert 10**5 < len(body) <= 10**5 + 2**16


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_is_down_is_named(kind, clock):
    server = rest_server.RestServer()
    server.stop()
    url = server.url.replace("http", "grpc") if kind == "grpc" else server.url
    clips = [wav_bytes(800)] * 4
    results = ask(
        url, clips, batch_size=1, retries=2, timeout_s=5.0, clock=clock
    )
    assert not any(result.valid for result in results)
    for result in results[:2]:
        assert f"{url}/v1/models/audio_tf: " in result.error
        assert "3 attempts" in result.error
    # The rest is not waited for.
    for result in results[2:]:
        assert "not asked" in result.error
    assert len(clock.pauses) == 4


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
        b'{"outputs": {"scores": [["0.5"]]}}',
        b'{"outputs": {"scores": [[true]]}}',
        b'{"outputs": {"scores": [[]]}}',
        b'{"outputs": {"scores": [[0.5]], "valid": ["no"]}}',
        b'{"outputs": {"scores": [[0.5]], "error": [0.5]}}',
        b'{"outputs": ' + 9_999 * b"[",
        b"[" * 9_999,
    ],
)
def test_a_strange_answer_is_an_error(answer, rest, clock):
    rest.answers = [(200, answer)]
    (result,) = ask(rest.url, [wav_bytes(800)], clock=clock)
    assert not result.valid and rest.url in result.error
    assert "Received: " in result.error
    assert clock.pauses == []


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


@pytest.mark.parametrize("kind", KINDS)
def test_the_url_names_a_version_by_its_label(kind, rest, rpc):
    """As `version_labels` of `models.config` call it."""
    rest.answers = [rest_answer(scores=[[0.5]])]
    rpc.answers = [proto_answer(scores=[[0.5]])]
    url = {"rest": rest, "grpc": rpc}[kind].url
    url = f"{url}/v1/models/birds/labels/stable"
    with client.Client(url) as asked:
        (result,) = asked.query([b"x"])
    assert result.valid and asked.url == url
    if kind == "rest":
        ((path, _),) = rest.requests
        assert path == "/v1/models/birds/labels/stable:predict"
    else:
        (request,) = rpc.requests
        assert request.model_spec.version_label == "stable"
        assert not request.model_spec.HasField("version")


@pytest.mark.parametrize(
    "url, model_name",
    [
        ("127.0.0.1:8501", None),
        ("ftp://127.0.0.1:8501", None),
        ("http://", None),
        ("http://127.0.0.1:many", None),
        ("http://my..host:8501", None),
        (f"grpc://{'a' * 64}.org:8500", None),
        ("http://127.0.0.1:8501/v1/models/birds", "dogs"),
        ("grpc://127.0.0.1:8500/behind/a/proxy", None),
        ("http://127.0.0.1:8501/v1/models/", None),
        ("http://127.0.0.1:8501/v1/models/birds/versions/latest", None),
        ("http://127.0.0.1:8501/v1/models/birds/version/2", None),
        ("grpc://127.0.0.1:8500/v1/models/birds/versions/-1", None),
        ("http://127.0.0.1:8501/v1/models/birds/metadata", None),
        ("http://127.0.0.1:8501/v1/models/birds/labels/a/b", None),
    ],
)
def test_a_wrong_url_is_refused(url, model_name):
    with pytest.raises(ValueError, match="Received: "):
        client.Client(url, model_name)


def rest_answer(**outputs):
    return 200, json.dumps({"outputs": outputs}).encode()


def proto_answer(**outputs):
    response = predict_pb2.PredictResponse()
    for name, value in outputs.items():
        response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
    return response


ANSWERS = {"rest": rest_answer, "grpc": proto_answer}


@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_are_not_finite_are_refused_by_clip(kind, rest, rpc):
    server = {"rest": rest, "grpc": rpc}[kind]
    nan, inf = float("nan"), float("inf")
    scores = [[0.25, 0.75], [0.5, nan], [-inf, 0.0], [nan, nan]]
    valid, codes = [True, True, True, False], [0, 0, 0, 1]
    answer = ANSWERS[kind](scores=scores, valid=valid, error=codes)
    server.answers = [answer]
    results = ask(server.url, [b"x"] * 4, errors=["", "too short"])
    assert [result.valid for result in results] == [True, False, False, False]
    assert results[1].error == (
        f"{server.url}/v1/models/audio_tf: scores that are not finite. "
        "Received: nan for class 1"
    )
    assert "-inf for class 0" in results[2].error
    assert results[3].error == "too short"


@pytest.mark.filterwarnings("error")
def test_a_score_beyond_float32_is_not_finite(rest):
    rest.answers = [(200, b'{"outputs": {"scores": [[1e39]]}}')]
    (result,) = ask(rest.url, [b"x"])
    assert "inf for class 0" in result.error


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_classes_may_not_change(kind, rest, rpc):
    server = {"rest": rest, "grpc": rpc}[kind]

    def answers():
        return [
            ANSWERS[kind](scores=[[0.5] * count], valid=[True])
            for count in (3, 2)
        ]

    server.answers = answers()
    first, second = ask(server.url, [b"x"] * 2, batch_size=1)
    assert first.valid and not second.valid
    assert "2 scores, 3 before" in second.error
    server.answers = answers()
    named = f"{server.url}/v1/models/audio_tf: .*scores 3 classes.*: 2"
    with pytest.raises(ValueError, match=named):
        ask(server.url, [b"x"], num_classes=2)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_not_read_further_than_was_asked_for(
    kind, rest, rpc, clock
):
    """Nothing of a gigabyte may come for a clip of three classes."""
    server = {"rest": rest, "grpc": rpc}[kind]
    answer = ANSWERS[kind](scores=[[0.5] * 3], note=["x" * 2**17])
    for classes, valid in ((None, True), (3, False)):
        server.answers = [answer]
        (result,) = ask(server.url, [b"x"], num_classes=classes, clock=clock)
        # Ten thousand classes have room for that.
        assert result.valid == valid
        if not result.valid:
            assert "longer than" in result.error or "larger" in result.error
    assert clock.pauses == []


def test_a_tensor_may_not_claim_to_be_large(rpc):
    """One value may stand for all of a tensor's: terabytes of zeros."""
    for shape in ([10**6, 10**6], [-1, 3]):
        answer = proto_answer(scores=[[0.5]])
        dims = answer.outputs["scores"].tensor_shape.dim
        for dim, size in zip(dims, shape, strict=True):
            dim.size = size
        rpc.answers = [answer]
        (result,) = ask(rpc.url, [b"x"])
        assert "larger than asked for" in result.error
        assert f"shape={shape}" in result.error
    rpc.answers = [proto_answer(scores=[[0.5]])]
    rpc.answers[0].outputs["scores"].dtype = 99
    (result,) = ask(rpc.url, [b"x"])
    assert not result.valid and "no tensor" in result.error


@pytest.mark.parametrize("headers", [{"Content-Length": "999"}, {}, None])
def test_a_body_that_is_cut_is_asked_for_again(headers, rest, clock):
    """With a length, in HTTP chunks, and without either."""
    whole = b'{"outputs": {"scores": [[0.25]]}}'
    cut, more = whole[:20], headers
    if headers == {}:
        more = {"Content-Length": None, "Transfer-Encoding": "chunked"}
        cut = b"14\r\n" + cut + b"\r\n"
    if headers is None:
        more = {"Content-Length": None}
    rest.answers = [(200, cut, more), (200, whole)]
    (result,) = ask(rest.url, [b"x"], clock=clock)
    assert result.valid and result.scores.tolist() == [0.25]
    assert len(rest.requests) == 2 and len(clock.pauses) == 1


ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202e\n\r not so " + "x" * 999


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_a_server_do_not_steer_the_terminal(kind, rest, rpc):
    rest.answers = [(400, json.dumps({"error": ESCAPES}).encode())]
    rpc.failures, rpc.words = [grpc.StatusCode.INTERNAL], ESCAPES
    (result,) = ask({"rest": rest, "grpc": rpc}[kind].url, [b"x"])
    assert result.error.isprintable() and len(result.error) < 700
    assert r"\x1b]0;owned\x07\x1b[2J\u202e\n\r not so xx" in result.error


def test_answers_and_names_of_a_server_do_not_steer_the_terminal(rest, rpc):
    outputs = {"\x1b[2J" + "y" * 999 + str(n): [0] for n in range(99)}
    rest.answers = [(200, ESCAPES.encode()), rest_answer(**outputs)]
    rpc.answers = [proto_answer(**outputs)]
    results = ask(rest.url, [b"x"] * 2, batch_size=1)
    for result in (*results, *ask(rpc.url, [b"x"])):
        assert not result.valid and "Received: " in result.error
        assert result.error.isprintable() and len(result.error) < 1_000


SECRET = "p%40ss-word"


def test_user_and_password_are_sent_and_never_told(rest, clock):
    url = rest.url.replace("//", f"//me:{SECRET}@")
    token = base64.b64encode(b"me:p@ss-word").decode()
    words = {"error": f"{token} of {url} is p@ss-word, " + "x" * 480 + token}
    rest.answers = [(403, json.dumps(words).encode()), (200, token.encode())]
    with client.Client(url, clock=clock) as asked:
        results = list(asked.query([b"x"] * 2, batch_size=1))
        shown = repr(asked.transport.address) + asked.url + str(results)
    assert [headers["Authorization"] for headers in rest.headers] == [
        f"Basic {token}"
    ] * 2
    assert "status 403, *** of" in results[0].error
    for secret in ("p@ss-word", token, token[:-4]):
        assert secret not in shown


@pytest.mark.parametrize(
    "url",
    [
        "ftp://me:{}@127.0.0.1:8501",
        "me:{}@127.0.0.1:8501",
        "http://me:{}@127.0.0.1:many",
        "http://me:{}@127.0.0.1:8501/v1/models/birds",
        "http://me:{}/x@127.0.0.1:8501",
        "http://me:{}\n@127.0.0.1:8501",
        "http://127.0.0.1:8501?key={}",
        "http://127.0.0.1:8501#{}",
        "grpc://me:{}@127.0.0.1:8500",
        "grpc://me:{}@127.0.0.1:8500/behind/a/proxy",
    ],
)
def test_a_wrong_url_tells_no_password(url):
    with pytest.raises(
        ValueError, match="Received: .*\\*\\*\\*|no paths"
    ) as error:
        client.Client(url.format(SECRET), "dogs")
    assert SECRET not in str(error.value)


def test_a_redirect_is_not_followed(rest):
    """It would carry the password to wherever the server says."""
    other = rest_server.RestServer()
    location = {"Location": f"{other.url}/v1/models/audio_tf:predict"}
    rest.answers = [(302, b"elsewhere", location)]
    (result,) = ask(rest.url, [b"x"])
    other.stop()
    assert "status 302" in result.error and len(rest.requests) == 1


@pytest.mark.parametrize("name", ["", "a b", "a\r\nHost: b", "a/b", "a?b", "ä"])
def test_a_model_name_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="`model_name` must.*Received: "):
        client.Client("http://127.0.0.1:8501", name)


@pytest.mark.parametrize("kind", KINDS)
def test_version_0_is_asked_for(kind, rest, rpc):
    rest.answers = [rest_answer(scores=[[0.5]])]
    rpc.answers = [proto_answer(scores=[[0.5]])]
    url = {"rest": rest, "grpc": rpc}[kind].url
    ask(f"{url}/v1/models/audio_tf/versions/0", [b"x"])
    if kind == "rest":
        assert rest.requests[0][0].endswith("/versions/0:predict")
    else:
        assert rpc.requests[0].model_spec.HasField("version")
    with pytest.raises(ValueError, match="Received: "):
        client.Client(f"{url}/v1/models/audio_tf/versions/{2**63}")


@pytest.mark.parametrize(
    "settings",
    [
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"timeout_s": float("inf")},
        {"timeout_s": 1e10},
        {"deadline_s": -1.0},
        {"backoff_s": -1.0},
        {"retries": -1},
        {"retries": 1.5},
        {"num_classes": 0},
    ],
)
def test_settings_are_checked(settings):
    ((name, value),) = settings.items()
    with pytest.raises(ValueError, match=f"`{name}`.*Received: {name}={value}"):
        client.Client("http://127.0.0.1:8501", **settings)


def test_what_is_asked_for_is_checked_before_it_is_asked(rest):
    with client.Client(rest.url) as asked:
        with pytest.raises(ValueError, match="batch_size=-1"):
            asked.query([b"x"], batch_size=-1)
        for one in ("dog.wav", pathlib.Path("dog.wav"), b"RIFF"):
            with pytest.raises(TypeError, match="`files` must be several"):
                asked.query(one)
        for signature in ("", "embed", "serving_default"):
            with pytest.raises(ValueError, match="Received: signature="):
                asked.query([b"x"], signature)
        (result,) = asked.query([wav_bytes(800)], "serving_audio_byte")
    assert "did you mean 'serving_audio_bytes'" in result.error


def test_no_signature_of_waveforms_is_asked_for_files():
    """All that an export may have are known, by what warms them up."""
    known = warmup.example_inputs(8_000, 0.1, batch_size=1)
    files = [name for name in known if "audio_bytes" in known[name]]
    assert files == [query.SIGNATURE]
    assert sorted([*query.WAVEFORM_SIGNATURES, *files]) == sorted(known)


@pytest.mark.parametrize("code", sorted(transport.TRANSIENT_CODES))
def test_grpc_asks_again(code, rpc, clock):
    rpc.failures = [getattr(grpc.StatusCode, code)] * 2
    (result,) = ask(rpc.url, [wav_bytes(800)], clock=clock)
    assert result.valid and len(rpc.requests) == 3 and len(clock.pauses) == 2


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "INTERNAL"])
def test_a_refusal_of_grpc_is_final(code, rpc, clock):
    rpc.failures = [getattr(grpc.StatusCode, code)]
    (result,) = ask(rpc.url, [wav_bytes(800)], clock=clock)
    assert f"{code}, as the test asked" in result.error
    assert len(rpc.requests) == 1 and clock.pauses == []


def test_a_message_that_is_too_long_stays_too_long(rpc, clock):
    """Its code is that of a server without a free thread."""
    rpc.failures = [grpc.StatusCode.RESOURCE_EXHAUSTED]
    rpc.words = "Received message larger than max (9 vs. 4)"
    (result,) = ask(rpc.url, [wav_bytes(800)], clock=clock)
    assert "RESOURCE_EXHAUSTED, Received message" in result.error
    assert len(rpc.requests) == 1 and clock.pauses == []


def test_grpc_asks_no_host_again_that_nobody_knows(rpc, clock):
    """Its code is that of a server that is not up."""
    rpc.failures = [grpc.StatusCode.UNAVAILABLE] * 3
    rpc.words = "address lookup failed for birds: Domain name not found"
    results = ask(rpc.url, [wav_bytes(800)] * 3, batch_size=1, clock=clock)
    assert "UNAVAILABLE, address lookup failed" in results[1].error
    assert "not asked" in results[2].error
    assert len(rpc.requests) == 2 and clock.pauses == []


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


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.json", b"{"),
        ("a.json", b"3"),
        ("a.json", b'"dog"'),
        ("a.json", b'{"mAP": 1}'),
        ("a.json", b'{"labels": "dog"}'),
        ("a.json", b'["dog", 3]'),
        ("a.json", b'{"labels": ["dog"], "errors": 3}'),
        ("a.json", b"[" * 99_999),
        ("a.json", b'["dog", "", "rain"]'),
        ("a.json", b'["dog", "rain", "dog"]'),
        ("a.txt", b"dog\nrain\ndog\n"),
        ("a.txt", b""),
        ("a.txt", b"d\xffg\n"),
    ],
)
def test_a_file_without_labels_is_named(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name):
        client.read_labels(tmp_path / name)


@pytest.mark.parametrize(
    "name, text", [("a.txt", "hund\ngrün\n"), ("a.json", '["hund",\n"grün"]')]
)
def test_labels_in_latin_1_are_told_by_their_line(name, text, tmp_path):
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    wanted = f"{name}, (line|row) 2: must be UTF-8.*Latin-1.*grün"
    with pytest.raises(ValueError, match=wanted):
        client.read_labels(tmp_path / name)
    (tmp_path / name).write_bytes('["hund"]'.encode("utf-16"))
    with pytest.raises(ValueError, match=f"{name}: must be UTF-8.*UTF-16"):
        client.read_labels(tmp_path / name)


def test_a_folder_of_labels_says_where_they_are(shared_export):
    with pytest.raises(ValueError, match="assets.extra/audio_tf.json"):
        client.read_labels(shared_export.folder)


def test_labels_are_read(shared_export, tmp_path):
    labels, errors = client.read_labels(
        shared_export.folder / "assets.extra" / "audio_tf.json"
    )
    assert labels == LABELS
    assert errors == [wav.ERRORS[code] for code in range(len(wav.ERRORS))]
    lines = tmp_path / "labels.txt"
    lines.write_text("\n".join(LABELS) + "\n")
    assert client.read_labels(lines) == (LABELS, None)
    lines.write_text(
        "\n".join(f"{n},{name},/m/{n}" for n, name in enumerate(LABELS))
    )
    assert client.read_labels(lines) == (LABELS, None)
    lines = lines.with_suffix(".json")
    lines.write_text(json.dumps(LABELS))
    assert client.read_labels(lines) == (LABELS, None)
