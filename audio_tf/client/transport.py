"""The ways to send a request, REST and gRPC of TensorFlow Serving."""

import dataclasses
import importlib
import math
import threading
import urllib.parse

from audio_tf.client.address import ServerError
from audio_tf.client.rest import ANSWER_BYTES, Rest
from audio_tf.terminal import printable

TRANSIENT_CODES = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"}
# The code for a server without a free thread is also that for a message which
# is too long, and stays so. gRPC tells the two apart by words alone.
TOO_LONG = "larger than max"
# Nor has it a code for a host that nobody knows.
NO_HOST = "Domain name not found"

# A server says by these that it has too much to do, a proxy that none is up.
BUSY = {429, 503, "UNAVAILABLE", "RESOURCE_EXHAUSTED"}

# The bytes that a number may have in a proto.
PROTO_BYTES = 10

# What makes a request by gRPC.
PACKAGES = (
    "grpc",
    "tensorflow",
    "tensorflow_serving.apis.predict_pb2",
    "tensorflow_serving.apis.prediction_service_pb2_grpc",
)


class Grpc:
    """Requests to `tensorflow.serving.PredictionService`, unencrypted.

    Threads share one channel: to make one takes longer than many a request.

    Args:
        address: `Address` of the server.
        clock: not used, since gRPC keeps the time of a request itself.

    Attributes:
        prepare: `None`: no bytes of a request are known before it is sent.

    Raises:
        ValueError: if the address has a path before `/v1/models`, or a user.
    """

    prepare = None

    def __init__(self, address, clock):
        del clock
        if address.prefix:
            raise ValueError(
                "gRPC has no paths. Received: "
                f"{printable(address.prefix)} in the URL"
            )
        if address.user:
            raise ValueError(
                "gRPC without encryption takes no user and password. "
                f"Received: {address.scheme}://***@{address.host}"
            )
        host = address.host
        if urllib.parse.urlsplit(f"//{host}").port is None:
            host = f"{host}:8500"
        # They take seconds, which the first request has not got.
        for package in PACKAGES:
            importlib.import_module(package)
        self.address = dataclasses.replace(address, host=host)
        self.limit = 0
        self.channels = []
        self.lock = threading.Lock()

    def connect(self, limit):
        """Opens a channel that takes messages of up to `limit` bytes.

        Those before it stay open: requests of other threads may be under way.
        """
        import grpc
        from tensorflow_serving.apis import prediction_service_pb2_grpc

        channel = grpc.insecure_channel(
            self.address.host,
            [
                ("grpc.max_send_message_length", -1),
                ("grpc.max_receive_message_length", limit),
                # `Client` alone retries, and not against a channel that
                # waits longer and longer before it connects again.
                ("grpc.enable_retries", 0),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.min_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
            ],
        )
        self.channels.append(channel)
        self.failure = grpc.RpcError
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        self.limit = limit

    def predict(self, signature, inputs, timeout_s, numbers):
        """Runs a signature; arguments and result are as in `Rest.predict`."""
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2

        limit = ANSWER_BYTES + PROTO_BYTES * numbers
        with self.lock:
            if limit > self.limit:
                self.connect(limit)
            stub = self.stub
        request = predict_pb2.PredictRequest()
        request.model_spec.name = self.address.model_name
        request.model_spec.signature_name = signature
        if self.address.version is not None:
            request.model_spec.version.value = self.address.version
        if self.address.version_label is not None:
            request.model_spec.version_label = self.address.version_label
        for name, rows in inputs.items():
            request.inputs[name].CopyFrom(
                tf.make_tensor_proto(rows, tf.string, [len(rows)])
            )
        try:
            response = stub.Predict(request, timeout=timeout_s)
        except self.failure as error:
            code, words = error.code().name, error.details() or ""
            unknown = code == "UNAVAILABLE" and NO_HOST in words
            lasting = unknown or TOO_LONG in words
            raise ServerError(
                f"{self.address.url}: {code}, {self.address.clean(words)}",
                transient=code in TRANSIENT_CODES and not lasting,
                status=None if unknown else code,
                answered=not unknown,
            ) from error
        outputs = {}
        for name, tensor in response.outputs.items():
            shape = [axis.size for axis in tensor.tensor_shape.dim]
            # A tensor of one value may claim to be of any size.
            if min(shape, default=0) < 0 or math.prod(shape) > limit:
                raise ServerError(
                    f"{self.address.url}: the output {self.address.clean(name)}"
                    f" is larger than asked for. Received: shape={shape}"
                )
            try:
                outputs[name] = tf.make_ndarray(tensor)
            except (TypeError, ValueError) as error:
                raise ServerError(
                    f"{self.address.url}: the output {self.address.clean(name)}"
                    f" is no tensor. Received: {self.address.clean(error)}"
                ) from error
        return outputs

    def close(self):
        """Closes the channels."""
        for channel in self.channels:
            channel.close()


TRANSPORTS = {"http": Rest, "https": Rest, "grpc": Grpc}
