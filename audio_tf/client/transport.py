"""How a request reaches a server: REST and gRPC of TensorFlow Serving."""

import base64
import http.client
import json
import re
import time
import typing
import urllib.error
import urllib.parse
import urllib.request

import numpy as np

MODEL_NAME = "audio_tf"  # As in `serving/models.config`.

# Too many requests, no one behind the proxy, model not loaded, too slow.
TRANSIENT_STATUSES = {429, 502, 503, 504}
TRANSIENT_CODES = {"UNAVAILABLE", "DEADLINE_EXCEEDED"}

MAX_ERROR_CHARACTERS = 500


class ServerError(RuntimeError):
    """A request that failed as a whole.

    Args:
        message: what went wrong; names the URL.
        transient: bool, whether the same request may succeed later.
    """

    def __init__(self, message, transient=False):
        super().__init__(message)
        self.transient = transient


class Address(typing.NamedTuple):
    """A server's URL in parts; `version` is `None` for the server's choice."""

    scheme: str
    host: str
    prefix: str
    model_name: str
    version: int | None

    @property
    def url(self):
        version = f"/versions/{self.version}" if self.version else ""
        return (
            f"{self.scheme}://{self.host}{self.prefix}"
            f"/v1/models/{self.model_name}{version}"
        )


def parse_url(url, model_name=None):
    """Reads `SCHEME://HOST:PORT[/v1/models/NAME[/versions/N]]`.

    Raises:
        ValueError: if it is none, or names another model than `model_name`.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.hostname and parts.scheme in TRANSPORTS
        usable = usable and parts.port != 0  # Raises if it is no number.
    except ValueError:
        usable = False
    path = usable and re.fullmatch(
        r"(.*?)(?:/v1/models/([^/:]+)(?:/versions/(\d+))?)?(?::predict)?/?",
        parts.path,
    )
    if not path:
        raise ValueError(
            f"A server's URL begins with one of {', '.join(TRANSPORTS)} and "
            "://HOST:PORT, and may end with /v1/models/NAME[/versions/N]. "
            f"Received: {url}"
        )
    prefix, named, version = path.groups()
    if named and model_name and named != model_name:
        raise ValueError(
            "The URL names another model than `model_name`. "
            f"Received: {url} and {model_name}"
        )
    return Address(
        parts.scheme,
        parts.netloc,
        prefix,
        named or model_name or MODEL_NAME,
        int(version) if version else None,
    )


class Rest:
    """Requests in TensorFlow Serving's JSON, by columns.

    Args:
        address: `Address` of the server.
    """

    def __init__(self, address):
        self.url = address.url

    def predict(self, signature, inputs, timeout_s):
        """Runs a signature.

        Args:
            signature: its name.
            inputs: dict of lists of bytes, by the names of the inputs.
            timeout_s: float, seconds that the server may take.

        Returns:
            Dict of arrays by the names of the outputs.

        Raises:
            ServerError: if there is no usable answer.
        """
        end = time.monotonic() + timeout_s
        columns = {
            name: [{"b64": base64.b64encode(row).decode()} for row in rows]
            for name, rows in inputs.items()
        }
        body = json.dumps({"signature_name": signature, "inputs": columns})
        request = urllib.request.Request(
            f"{self.url}:predict",
            body.encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as response:
                answer = read_until(response, end)
        except urllib.error.HTTPError as error:
            raise ServerError(
                f"{self.url}: status {error.code}, {explain(error)}",
                transient=error.code in TRANSIENT_STATUSES,
            ) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            reason = str(reason) or type(reason).__name__
            raise ServerError(
                f"{self.url}: {reason}", transient=True
            ) from error
        try:
            outputs = json.loads(answer)["outputs"]
            # A single output comes without its name.
            if not isinstance(outputs, dict):
                outputs = {"scores": outputs}
            return {name: np.asarray(rows) for name, rows in outputs.items()}
        except (ValueError, KeyError, TypeError) as error:
            start = answer[:MAX_ERROR_CHARACTERS].decode(errors="replace")
            raise ServerError(
                f"{self.url}: no answer of TensorFlow Serving. "
                f"Received: {start!r}"
            ) from error

    def close(self):
        """There is no connection between requests."""


def read_until(response, end):
    """All of a response; a socket's timeout starts anew with each byte."""
    parts = []
    while part := response.read1(2**16):
        parts.append(part)
        if time.monotonic() > end:
            raise TimeoutError("timed out")
    return b"".join(parts)


def explain(error):
    """The server's own words in an `HTTPError`."""
    try:
        content = error.read(2**16)
    except (OSError, http.client.HTTPException):
        content = b""
    try:
        text = str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        text = content.decode(errors="replace") or str(error.reason)
    return text[:MAX_ERROR_CHARACTERS]


class Grpc:
    """Requests to `tensorflow.serving.PredictionService`, unencrypted.

    Args:
        address: `Address` of the server.

    Raises:
        ValueError: if the address has a path before `/v1/models`.
    """

    def __init__(self, address):
        # They import TensorFlow, which takes seconds.
        import grpc
        from tensorflow_serving.apis import prediction_service_pb2_grpc

        if address.prefix:
            raise ValueError(
                f"gRPC has no paths. Received: {address.prefix} in the URL"
            )
        host = address.host if ":" in address.host else f"{address.host}:8500"
        self.address = address._replace(host=host)
        self.failure = grpc.RpcError
        self.channel = grpc.insecure_channel(
            host,
            [
                ("grpc.max_send_message_length", -1),
                ("grpc.max_receive_message_length", -1),
                # `Client` alone retries, and not against a channel that
                # waits longer and longer before it connects again.
                ("grpc.enable_retries", 0),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.min_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
            ],
        )
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(
            self.channel
        )

    def predict(self, signature, inputs, timeout_s):
        """Runs a signature; as `Rest.predict`."""
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2

        request = predict_pb2.PredictRequest()
        request.model_spec.name = self.address.model_name
        request.model_spec.signature_name = signature
        if self.address.version:
            request.model_spec.version.value = self.address.version
        for name, rows in inputs.items():
            request.inputs[name].CopyFrom(
                tf.make_tensor_proto(rows, tf.string, [len(rows)])
            )
        try:
            response = self.stub.Predict(request, timeout=timeout_s)
        except self.failure as error:
            code = error.code().name
            raise ServerError(
                f"{self.address.url}: {code}, "
                f"{(error.details() or '')[:MAX_ERROR_CHARACTERS]}",
                transient=code in TRANSIENT_CODES,
            ) from error
        return {
            name: tf.make_ndarray(tensor)
            for name, tensor in response.outputs.items()
        }

    def close(self):
        """Closes the channel."""
        self.channel.close()


TRANSPORTS = {"http": Rest, "https": Rest, "grpc": Grpc}
