"""Several hosts train as one does, each of them a process on loopback."""

import csv
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
import soundfile
import tiny

from audio_tf.data.shares import Share
from audio_tf.runs import host_callbacks, host_settings, hosts, last_words

SPREAD = {"distribution": "data_parallel", "seed": 0}
TINY = {**tiny.SIZES, "dropout": 0.1}


class Settings(host_settings.HostSettings):
    """Settings of hosts alone."""


def settings(**values):
    """Settings of a start over hosts."""
    return Settings(distribution="data_parallel", **values)


@pytest.fixture
def on_jax(monkeypatch):
    """Lets settings pass that only JAX can do; nothing is computed."""
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")


def test_hosts_are_named_by_flags_or_by_the_environment(on_jax, monkeypatch):
    assert host_settings.places(settings()) == (None, 1, 0)
    both = "10.0.0.1:1234,10.0.0.2:2345"
    asked = settings(job_addresses=both, process_id=1)
    assert host_settings.places(asked) == (both, 2, 1)
    monkeypatch.setenv("KERAS_DISTRIBUTION_JOB_ADDRESSES", "10.0.0.1:1234")
    monkeypatch.setenv("KERAS_DISTRIBUTION_NUM_PROCESSES", "3")
    monkeypatch.setenv("KERAS_DISTRIBUTION_PROCESS_ID", "2")
    assert host_settings.places(settings()) == ("10.0.0.1:1234", 3, 2)
    assert host_settings.places(settings(process_id=0))[2] == 0
    with pytest.raises(ValueError, match="need --distribution data_parallel"):
        Settings()
    monkeypatch.setenv("KERAS_DISTRIBUTION_PROCESS_ID", "two")
    with pytest.raises(ValueError, match="_PROCESS_ID must be a whole number"):
        settings()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"process_id": 0}, "--job-addresses is missing.*'--process-id': 0"),
        ({"job_addresses": "a:99999,b:1", "process_id": 0}, "up to 65535"),
        ({"job_addresses": "a:1", "process_id": 0}, "--num-processes is miss"),
        ({"job_addresses": "a:1,b:1"}, "--process-id is missing"),
        ({"job_addresses": "a,b:1", "process_id": 0}, "ADDRESS:PORT"),
        ({"job_addresses": "a:1,b:1", "process_id": 2}, "from 0 to 1"),
        (
            {"job_addresses": "a:1,b:1", "num_processes": 3, "process_id": 0},
            "2 addresses, 3 hosts",
        ),
    ],
)
def test_hosts_that_do_not_fit_are_refused(values, message, on_jax):
    with pytest.raises(ValueError, match=message):
        settings(**values)


def test_only_jax_trains_over_hosts(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "tensorflow")
    with pytest.raises(ValueError, match="keras/issues/20585.*tensorflow"):
        settings(job_addresses="a:1,b:1", process_id=0)


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_hosts_of_tensorflow_are_refused(backend, monkeypatch):
    """On JAX, too, before a corpus is read; one device asks for none."""
    monkeypatch.setattr(keras.backend, "backend", lambda: backend)
    monkeypatch.setenv("TF_CONFIG", '{"task": 0}')
    Settings()
    words = r"`distribution` takes no hosts .*Received: TF_CONFIG={\"task\": 0}"
    with pytest.raises(ValueError, match=words):
        settings()


def test_a_run_does_not_keep_its_hosts(on_jax):
    started = settings(job_addresses="a:1,b:1", process_id=1)
    content = started.to_json()
    assert content["settings"] == {"distribution": "data_parallel"}
    assert content["given"] == ["distribution"]
    assert host_settings.places(Settings.from_json(content)) == (None, 1, 0)
    more = Settings.from_json(
        content, job_addresses="a:1,b:1,c:1", process_id=2
    )
    assert host_settings.places(more)[1:] == (3, 2)


def test_hosts_that_differ_are_named(monkeypatch):
    texts = [json.dumps({"--seed": seed, "corpus": 3}) for seed in (0, 0, 1)]
    monkeypatch.setattr(hosts, "gathered", lambda text, share: texts)
    with pytest.raises(
        ValueError, match="same --seed.*0 on host 0, 1 on host 2"
    ):
        hosts.check_alike({}, Share(0, 3, 3))
    texts.pop()
    hosts.check_alike({}, Share(0, 2, 2))


JAX_ENDS = [
    b"F1123 01:49:27 client.h:80] Terminating process because the JAX "
    b"distributed service detected fatal errors. This most likely\n",
    b"# of tasks that reached the barrier: 1/2.\n",
    b"    @     0x7fc9e7740634  absl::LogMessage::SendToLog()\n",
]
LOGGED = b"E1123 01:49:27 agent.cc:302] Polled an error\n"
LOST, OWN = b"train: a host was lost\n", b"train: a step failed\n"


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ([b"a warning\n", *JAX_ENDS], [b"a warning\n", LOST]),
        # An error of the host's own, of which JAX hears at any moment.
        ([last_words.ENDS, OWN], [OWN]),
        ([last_words.ENDS, OWN, *JAX_ENDS], [OWN]),
        ([last_words.ENDS, LOGGED, *JAX_ENDS], [LOGGED, LOST]),
        (
            [last_words.ENDS, LOGGED, OWN, LOGGED, *JAX_ENDS],
            [LOGGED, OWN, LOGGED],
        ),
        ([*JAX_ENDS, last_words.ENDS, OWN], [LOST]),
        ([JAX_ENDS[0], last_words.ENDS, OWN, *JAX_ENDS], [LOST]),
    ],
)
def test_what_jax_says_as_it_ends_becomes_one_line(said, left):
    found = io.BytesIO()
    last_words.copy(said, found, LOST)
    assert found.getvalue() == b"".join(left)


@pytest.mark.parametrize(
    ("error", "is_named"),
    [
        (RuntimeError("INTERNAL: a barrier"), True),
        (ValueError("UNKNOWN: Gloo AllGather failed: Connection closed"), True),
        (ValueError("`seed` must be whole"), False),
        (OSError("UNKNOWN: a disk"), False),
    ],
)
def test_a_failed_step_is_named(error, is_named):
    found = hosts.named(error, 2)
    assert (found is not error) == is_named
    assert str(error) in str(found)
    assert is_named == ("another was lost" in str(found))


class Written(keras.callbacks.Callback):
    """Notes the epochs that it is called at."""

    def __init__(self):
        super().__init__()
        self.epochs = []

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(epoch)


@pytest.mark.parametrize(("index", "epochs"), [(0, [4]), (1, [])])
def test_only_the_first_host_writes(index, epochs):
    written = Written()
    host_callbacks.OfFirst([written], Share(index, 2, 2)).on_epoch_end(4)
    assert written.epochs == epochs


def write_corpus(folder):
    """Noise that becomes louder, of unequal length."""
    rng = np.random.default_rng(5)
    for number in range(20):
        speaker = folder / f"speaker{number % 3}"
        speaker.mkdir(parents=True, exist_ok=True)
        length = rng.integers(3_000, 7_000)
        noise = rng.standard_normal(length) * np.linspace(0.01, 0.3, length)
        soundfile.write(speaker / f"{number}.wav", noise, 8_000)


@pytest.fixture(scope="module")
def corpus(made_once):
    return made_once("corpus_of_hosts", write_corpus)


@pytest.fixture(scope="module")
def alone(corpus, made_once):
    """The losses of ten steps by one process."""
    folder = made_once(
        "one_host",
        lambda folder: finish(start(corpus, folder / "run", 1, *TEN)),
    )
    return losses(folder / "run")


def start(corpus, out, count, *more):
    """Starts a pre-training over so many processes; a list of `Popen`."""
    pytest.importorskip("jax")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "audio_tf.cli", "pretrain"]
    command += ["--dataset", "folder", "--data-dir", corpus]
    command += ["--cache-dir", out.parent / "cache", "--features", "s3prl"]
    command += ["--sample-rate-hz", "8000", "--target", "input"]
    command += ["--masking", "s3prl", "--feature-cache", "--batch-size", "4"]
    command += ["--model-kwargs", json.dumps(TINY), "--buckets", "1"]
    command += ["--learning-rate", "0.1", "--distribution", "data_parallel"]
    if "--resume" in more:
        command = command[:4] + ["--distribution", "data_parallel"]
    processes = []
    for index in range(count):
        here = []
        if count > 1:
            here = ["--job-addresses", f"127.0.0.1:{port}"]
            here += ["--num-processes", count, "--process-id", index]
        processes.append(
            subprocess.Popen(
                [str(each) for each in [*command, "--out", out, *more, *here]],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env={
                    **os.environ,
                    "KERAS_BACKEND": "jax",
                    "XLA_FLAGS": "--xla_backend_optimization_level=0",
                },
            )
        )
    return processes


def finish(processes):
    """Waits for processes, all of which must be well."""
    try:
        for each in processes:
            error = each.communicate(timeout=540)[1]
            assert each.returncode == 0, error[-3000:]
    finally:
        for each in processes:
            each.kill()


def losses(out):
    """The losses of a run's steps."""
    with open(out / "history.csv") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


TEN = ("--steps", "10", "--save-every", "1", "--picture-every", "10")


@pytest.mark.slow
def test_two_hosts_train_as_one(alone, corpus, tmp_path):
    """Masks and dropout are random, and other ones for each utterance."""
    out = tmp_path / "run"
    finish(start(corpus, out, 2, *TEN))
    assert len(alone) == 10 and len(set(alone)) == 10
    np.testing.assert_allclose(losses(out), alone, rtol=1e-5)
    assert (out / "preset" / "provenance.json").is_file()
    assert list((out / "logs").glob("pictures/events*"))


@pytest.mark.slow
def test_a_run_goes_on_over_other_hosts(alone, corpus, tmp_path):
    out = tmp_path / "run"
    processes = start(corpus, out, 4, *TEN)
    wait_for(out / "history.csv", 3)
    for each in processes:
        each.kill()
        each.communicate()
    finish(start(corpus, out, 2, "--resume"))
    np.testing.assert_allclose(losses(out), alone, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_host_ends_the_others_with_one_line(lost, corpus, tmp_path):
    out = tmp_path / "run"
    processes = start(corpus, out, 2, "--steps", 9000, "--save-every", 1)
    wait_for(out / "history.csv", 2)
    processes[lost].send_signal(signal.SIGKILL)
    other = processes[1 - lost]
    error = other.communicate(timeout=hosts.LOST_AFTER_S + 60)[1]
    processes[lost].communicate()
    assert other.returncode not in (0, -signal.SIGABRT)
    # The path of the run, which the lines end with, has the word, too.
    said = [line for line in error.splitlines() if "audio-tf" in line]
    assert len(said) == 1 and "--resume" in said[0]
    assert re.search("another (host )?was lost", said[0])
    assert "Check failure" not in error and "Traceback" not in error
    assert hosts.checkpoints.epochs_done(out / "last.keras") >= 1


def wait_for(history, rows):
    """Waits until a history has so many rows."""
    ends = time.monotonic() + 500
    while not history.is_file() or len(losses(history.parent)) < rows:
        assert time.monotonic() < ends
        time.sleep(0.2)
