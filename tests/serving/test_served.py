"""Requests merged by TensorFlow's scheduler, as the stand-in has it."""

import collections
import concurrent.futures
import os
import sys
import threading

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("an export is TensorFlow's", allow_module_level=True)

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from serving import grpc_server, kit, served

# Those that this process may use, which Linux alone tells.
CORES = (
    len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
)


def parameters(**values):
    """Small `BatchingParameters`."""
    values = {
        "max_batch_size": 4,
        "batch_timeout_micros": 1_000,
        "max_enqueued_batches": 2,
        "num_batch_threads": 1,
        **values,
    }
    text = " ".join(f"{k} {{ value: {v} }}" for k, v in values.items())
    return kit.parse(text, "BatchingParameters")


def signature(length_of):
    """A signature that says something of each clip."""
    return tf.function(
        lambda audio_bytes: {
            "valid": tf.strings.length(audio_bytes) > 0,
            "scores": length_of(audio_bytes),
        },
        autograph=False,
    ).get_concrete_function(tf.TensorSpec([None], tf.string, "audio_bytes"))


def test_each_version_answers_for_itself():
    """Queues of one name would be one queue, that of the first version."""
    for version, offset in (("1", 100), ("2", 200)):
        run = served.merged(
            signature(lambda x, offset=offset: tf.strings.length(x) + offset),
            parameters(),
            version,
        )
        outputs = run(tf.constant([b"abc", b""]))
        assert outputs["scores"].numpy().tolist() == [offset + 3, offset]
        assert outputs["valid"].numpy().tolist() == [True, False]


@pytest.mark.skipif(
    CORES < 2,
    reason="on one core TensorFlow has one thread, which the batch blocks",
)
def test_a_full_queue_refuses_and_the_others_are_answered_rightly():
    go, sizes = threading.Event(), []

    def wait(lengths):
        sizes.append(len(lengths))
        assert go.wait(60.0)
        return lengths

    def blocked(clips):
        found = tf.numpy_function(wait, [tf.strings.length(clips)], tf.int32)
        found.set_shape([None])
        return found

    run = served.merged(signature(blocked), parameters(), "blocked")
    refused = threading.Semaphore(0)

    def ask(length):
        try:
            return run(tf.constant([b"x" * length]))["scores"].numpy().tolist()
        except tf.errors.UnavailableError as error:
            refused.release()
            return str(error)

    # A batch that runs and two that wait have 12 clips.
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        asked = [pool.submit(ask, length) for length in range(30)]
        for _ in range(18):
            assert refused.acquire(timeout=60.0)
        go.set()
        answers = [each.result() for each in asked]
    told = collections.Counter(
        "queue" in answer
        for length, answer in enumerate(answers)
        if answer != [length]
    )
    assert set(told) == {True} and 18 <= told[True] < 30
    assert max(sizes) > 1 and sum(sizes) == 30 - told[True]


class Busy:
    """A model whose queue is full."""

    def run(self, name, inputs):
        raise served.Overloaded("the queue is full")


def test_overload_is_unavailable_by_grpc():
    server, port = grpc_server.start(grpc_server.Predictions(Busy(), "birds"))
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "birds"
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Predict(request, timeout=60.0)
    server.stop(None).wait()
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    assert caught.value.details() == "the queue is full"


@pytest.mark.long
def test_a_merged_model_scores_as_alone(shared_export):
    """The file's own parameters fit the signature of an export."""
    alone = served.Served(shared_export.folder)
    merged = served.Served(shared_export.folder, kit.batching())
    inputs = {"audio_bytes": [b"", b"RIFF"]}
    expected = alone.run(served.SIGNATURE, inputs)
    found = merged.run(served.SIGNATURE, inputs)
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    with pytest.raises(served.BadRequest, match="maximum"):
        merged.run(served.SIGNATURE, {"audio_bytes": [b""] * 33})
