"""The export over HTTP on loopback, by KServe in a process of its own.

Run by `make test-serving`. Elsewhere a Python that has kserve is named by
KSERVE_PYTHON; without one these tests skip.
"""

import base64
import concurrent.futures
import io
import json
import urllib.error
import urllib.request

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("an export is TensorFlow's", allow_module_level=True)

from audio_tf import client
from serving import process, served

if not process.has_kserve():
    pytest.skip(
        "KSERVE IS NOT TESTED: `make test-serving` installs it",
        allow_module_level=True,
    )


@pytest.fixture(scope="module")
def model(shared_export):
    return served.Served(shared_export.folder)


@pytest.fixture(scope="module")
def url(shared_export, tmp_path_factory):
    log = tmp_path_factory.mktemp("kserve") / "server.log"
    with process.serve(shared_export.folder.parent, log) as (_, url):
        yield url


def post(url, body, name="audio_tf"):
    """Status and answer, decoded, to a body of bytes or for JSON."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/v1/models/{name}:predict", body)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def wav_bytes(samples, seed=0, rate_hz=8_000, **kwargs):
    audio = np.random.default_rng(seed).uniform(-0.5, 0.5, samples)
    file = io.BytesIO()
    soundfile.write(file, audio, rate_hz, **{"format": "WAV", **kwargs})
    return file.getvalue()


def b64(content):
    return {"b64": base64.b64encode(content).decode()}


CLIPS = [
    wav_bytes(8_000),
    b"no audio",
    wav_bytes(131, subtype="FLOAT"),
    b"",
    wav_bytes(13_007, subtype="PCM_24", rate_hz=11_025),
    wav_bytes(5_000)[:2_000],
]


def expected(model, clips):
    outputs = model.run("serving_audio_bytes", {"audio_bytes": clips})
    assert outputs["valid"].tolist() == [True, False, True, False, True, False]
    return outputs


def test_columns_of_bytes(url, model):
    status, answer = post(
        url,
        {
            "signature_name": "serving_audio_bytes",
            "inputs": {"audio_bytes": [b64(clip) for clip in CLIPS]},
        },
    )
    assert status == 200
    found, known = answer["outputs"], expected(model, CLIPS)
    np.testing.assert_allclose(found["scores"], known["scores"], atol=1e-5)
    assert found["valid"] == known["valid"].tolist()
    assert found["error"] == known["error"].tolist()


def test_rows_of_bytes(url, model):
    known = expected(model, CLIPS)
    for instances in (
        [{"audio_bytes": b64(clip)} for clip in CLIPS],
        [b64(clip) for clip in CLIPS],
    ):
        status, answer = post(
            url,
            {"signature_name": "serving_audio_bytes", "instances": instances},
        )
        assert status == 200
        for row, (number, valid) in zip(
            answer["predictions"], enumerate(known["valid"]), strict=True
        ):
            np.testing.assert_allclose(
                row["scores"], known["scores"][number], atol=1e-5
            )
            assert row["valid"] == valid
            assert row["error"] == known["error"][number]


@pytest.mark.parametrize("lengths", [None, [700, 311]])
def test_waveforms_by_rows_and_columns(lengths, url, model, rng):
    x = rng.uniform(-0.5, 0.5, (2, 700)).astype("float32")
    inputs = {"waveform": x.tolist()}
    if lengths:
        inputs["lengths"] = lengths
    rows = [
        dict(zip(inputs, row, strict=True))
        for row in zip(*inputs.values(), strict=True)
    ]
    known = model.run(
        "serving_default", {"waveform": x, "lengths": lengths or [-1]}
    )
    for body, key in (
        ({"inputs": inputs}, "outputs"),
        ({"instances": rows}, "predictions"),
    ):
        status, answer = post(url, body)
        assert status == 200
        np.testing.assert_allclose(answer[key], known["scores"], atol=1e-5)


def test_the_other_signatures(url, model, rng):
    x = rng.uniform(-0.5, 0.5, (2, 700)).astype("float32")
    for name in ("embed", "frames", "explain"):
        status, answer = post(
            url, {"signature_name": name, "inputs": {"waveform": x.tolist()}}
        )
        assert status == 200
        known = model.run(name, {"waveform": x})
        outputs = answer["outputs"]
        if len(known) == 1:
            outputs = dict.fromkeys(known, outputs)
        for key, value in known.items():
            np.testing.assert_allclose(outputs[key], value, atol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        [],
        {},
        {"instances": []},
        {"instances": "dog"},
        {"instances": [{"song": 1}]},
        {"instances": [[0.1, 0.2], [0.1]]},
        {"inputs": {"waveform": [["high", "low"]]}},
        {"inputs": {"waveform": [0.1]}},
        {"inputs": {"waveform": [[0.1]], "lengths": [1, 1]}},
        {"inputs": {"lengths": [1]}},
        {"inputs": {"waveform": [[0.1]], "song": [1]}},
        {"inputs": {"waveform": [[0.1]]}, "instances": [[0.1]]},
        {"signature_name": "sing", "instances": [[0.1]]},
        {
            "signature_name": "serving_audio_bytes",
            "inputs": {"audio_bytes": [{"b64": "?"}]},
        },
        {
            "signature_name": "serving_audio_bytes",
            "inputs": {"audio_bytes": [{"b32": "AA"}]},
        },
    ],
)
def test_a_bad_request_gets_400(body, url):
    status, answer = post(url, body)
    assert status == 400 and answer["error"]
    status, _ = post(url, {"inputs": {"waveform": [[0.1]]}})
    assert status == 200


def test_an_unknown_model_gets_404(url):
    status, answer = post(url, {"instances": [[0.1]]}, name="birds")
    assert status == 404 and "birds" in answer["error"]


def test_several_clients_at_a_time(url, model):
    known = expected(model, CLIPS)

    def ask(batch_size):
        with client.Client(url, retries=0) as asked:
            return list(asked.query(CLIPS, batch_size=batch_size))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for results in pool.map(ask, [1, 2, 3, 6] * 2):
            for number, result in enumerate(results):
                assert result.valid == known["valid"][number], result
                if result.valid:
                    np.testing.assert_allclose(
                        result.scores, known["scores"][number], atol=1e-5
                    )
