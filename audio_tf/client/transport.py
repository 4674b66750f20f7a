"""Sends requests to a server, by REST or gRPC of TensorFlow Serving."""

import asyncio
import base64
import dataclasses
import functools
import http.client
import io
import json
import math
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request

import numpy as np

from audio_tf.terminal import printable

MODEL_NAME = "audio_tf"  # As in `serving/models.config`.

# Too many requests, no one behind the proxy, model not loaded, too slow.
TRANSIENT_STATUSES = {429, 502, 503, 504}
TRANSIENT_CODES = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"}
# The code for a server without a free thread is also that for a message which
# is too long, and stays so. gRPC tells the two apart by words alone.
TOO_LONG = "larger than max"

# A server says by these that it has too much to do, a proxy that none is up.
BUSY = {429, 503, "UNAVAILABLE", "RESOURCE_EXHAUSTED"}

MAX_ERROR_CHARACTERS = 500
MAX_ERROR_BYTES = 2**16
HEAD_BYTES = 2**16  # Of an answer, without its body.
MAX_VERSION = 2**63 - 1  # An int64 in TensorFlow Serving's protos.

# The bytes that an answer may have: for names and white space, and for each
# number in JSON or in a proto, with what stands between two of them.
ANSWER_BYTES = 2**16
JSON_BYTES = 64
PROTO_BYTES = 10


class ServerError(RuntimeError):
    """A request that failed as a whole.

    ```python
    try:
        scores = client.predict([contents])
    except audio_tf.client.ServerError as error:
        print(error, "try again" if error.transient else "", error.status)
    ```

    Args:
        message: str, what went wrong; it names the URL.
        transient: bool, whether the same request may succeed later.
        status: int of HTTP or str of gRPC, what the server answered; `None`
            if it was not reached or not understood.
    """

    def __init__(self, message, transient=False, status=None):
        super().__init__(message)
        self.transient = transient
        self.status = status


@dataclasses.dataclass(frozen=True)
class Address:
    """A server's URL in parts.

    Attributes:
        scheme: key of `TRANSPORTS`.
        host: `HOST` or `HOST:PORT`, without user and password.
        prefix: path before `/v1/models`, or `""`.
        model_name: name of the model.
        version: int, or `None` for the server's choice.
        user: `USER:PASSWORD` as bytes, or `None`. It is in no text.
    """

    scheme: str
    host: str
    prefix: str
    model_name: str
    version: int | None
    user: bytes | None = dataclasses.field(default=None, repr=False)

    @property
    def url(self):
        """The URL without user and password, for requests and messages."""
        version = "" if self.version is None else f"/versions/{self.version}"
        return (
            f"{self.scheme}://{self.host}{self.prefix}"
            f"/v1/models/{self.model_name}{version}"
        )

    @property
    def token(self):
        """User and password as HTTP's Basic authentication has them."""
        return base64.b64encode(self.user).decode() if self.user else None

    def clean(self, text):
        """Returns words of a server on one line, cut, without the password."""
        text = printable(text, MAX_ERROR_CHARACTERS + len(self.token or ""))
        if self.user:
            password = self.user.decode(errors="replace").partition(":")[2]
            for secret in filter(None, (self.token, password)):
                text = text.replace(printable(secret), "***")
        return printable(text, MAX_ERROR_CHARACTERS)


def redact(url):
    """Returns a URL of any form without user, password and query."""
    url = re.sub(r"^(\w+://)?.*@", r"\1***@", str(url), flags=re.DOTALL)
    return printable(re.sub(r"[?#].*", "?***", url, flags=re.DOTALL))


def parse_url(url, model_name=None):
    """Reads `SCHEME://[USER:PASSWORD@]HOST:PORT[/v1/models/NAME[/versions/N]]`.

    Returns:
        `Address`.

    Raises:
        ValueError: if `url` is no such URL, or names another model than
            `model_name`. The message holds no password.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.hostname and parts.scheme in TRANSPORTS
        usable = usable and parts.port != 0  # Raises if it is no number.
        usable = usable and not (parts.query or parts.fragment)
        usable = usable and re.fullmatch(r"[!-~]+", url)
    except ValueError:
        usable = False
    path = usable and re.fullmatch(
        r"(.*?)(?:/v1/models/([^/:]+)(?:/versions/(\d+))?)?(?::predict)?/?",
        parts.path,
    )
    if not path or int(path[3] or 0) > MAX_VERSION:
        raise ValueError(
            f"A server's URL begins with one of {', '.join(TRANSPORTS)} and "
            "://HOST:PORT, may end with /v1/models/NAME[/versions/N], and has "
            f"no query, no blank and nothing beyond ASCII. Received: "
            f"{redact(url)}"
        )
    prefix, named, version = path.groups()
    if named and model_name and named != model_name:
        raise ValueError(
            "The URL names another model than `model_name`. "
            f"Received: {redact(url)} and {printable(model_name)}"
        )
    name = named or (MODEL_NAME if model_name is None else model_name)
    if not re.fullmatch(r"[!-~]+", name) or set(name) & set("/:?#"):
        raise ValueError(
            "`model_name` must be of ASCII characters, without blanks and "
            f"none of / : ? #. Received: model_name={printable(name)!r}"
        )
    user, _, host = parts.netloc.rpartition("@")
    user = urllib.parse.unquote_to_bytes(user)
    if user and b":" not in user:
        user += b":"
    return Address(
        parts.scheme,
        host,
        prefix,
        name,
        int(version) if version else None,
        user or None,
    )


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as the error that it is.

    urllib would send a request without its body, but with user and password,
    to wherever the server says.
    """

    def redirect_request(self, *arguments):
        """Returns `None`, by which urllib follows no redirection."""
        return None


class ReaderUntil(io.RawIOBase):
    """Reads a connection up to a point in time.

    A socket's own timeout starts anew with each byte, and a server that sends
    one now and then would be waited for without end.

    Args:
        raw: unbuffered reader of the connection.
        set_timeout: function that sets the seconds of the next reading.
        clock: tells the time, as the module `time` does.
        end: float, when the reading ends, in the clock's seconds.
    """

    def __init__(self, raw, set_timeout, clock, end):
        self.raw = raw
        self.set_timeout = set_timeout
        self.clock = clock
        self.end = end

    def readable(self):
        """Tells that the bytes can be read."""
        return True

    def readinto(self, buffer):
        """Reads into a buffer the bytes that come before the end.

        Raises:
            TimeoutError: if the end has come.
        """
        left_s = self.end - self.clock.monotonic()
        if left_s <= 0.0:
            raise TimeoutError("timed out")
        self.set_timeout(left_s)
        return self.raw.readinto(buffer)

    def close(self):
        self.raw.close()
        super().close()


class ResponseUntil(http.client.HTTPResponse):
    """A response whose headers and body are read up to a point in time."""

    def __init__(self, sock, *args, clock, end, **kwargs):
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(
            ReaderUntil(self.fp.detach(), sock.settimeout, clock, end)
        )


class TimedConnection(http.client.HTTPConnection):
    """A connection whose timeout holds for all of the answer."""

    def __init__(self, *args, clock, **kwargs):
        super().__init__(*args, **kwargs)
        end = clock.monotonic() + self.timeout
        self.response_class = functools.partial(
            ResponseUntil, clock=clock, end=end
        )


class TimedSecureConnection(TimedConnection, http.client.HTTPSConnection):
    """An encrypted `TimedConnection`."""


class TimedHTTP(urllib.request.HTTPHandler):
    """Opens a `TimedConnection` for each request."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def http_open(self, request):
        """Sends a request, as `urllib.request` asks a handler to."""
        connection = functools.partial(TimedConnection, clock=self.clock)
        return self.do_open(connection, request)


class TimedHTTPS(urllib.request.HTTPSHandler):
    """Opens a `TimedSecureConnection` for each request."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def https_open(self, request):
        """Sends a request, as `urllib.request` asks a handler to."""
        connection = functools.partial(TimedSecureConnection, clock=self.clock)
        return self.do_open(connection, request)


class Rest:
    """Requests in TensorFlow Serving's JSON, by columns.

    Args:
        address: `Address` of the server.
        clock: tells the time, as the module `time` does.
    """

    def __init__(self, address, clock):
        self.address = address
        self.url = address.url
        self.opener = urllib.request.build_opener(
            NoRedirects, TimedHTTP(clock), TimedHTTPS(clock)
        )

    def predict(self, signature, inputs, timeout_s, numbers):
        """Runs a signature.

        Args:
            signature: str, its name.
            inputs: dict of lists of bytes, by the names of the inputs.
            timeout_s: float, the seconds that the answer may take.
            numbers: int, the numbers that the answer may hold at most.

        Returns:
            Dict of arrays by the names of the outputs.

        Raises:
            ServerError: if there is no usable answer.
        """
        request = urllib.request.Request(
            f"{self.url}:predict",
            self.body(signature, inputs),
            self.headers(),
        )
        try:
            with self.opener.open(request, timeout=timeout_s) as response:
                answer = read_at_most(response, self.limit(numbers))
        except urllib.error.HTTPError as error:
            with error:
                raise self.refusal(error.code, explain(error)) from error
        except (OSError, http.client.HTTPException) as error:
            raise self.no_answer(error) from error
        return self.outputs(response, answer, numbers)

    def body(self, signature, inputs):
        """Returns the JSON of a request as bytes; see `predict`."""
        columns = {
            name: [{"b64": base64.b64encode(row).decode()} for row in rows]
            for name, rows in inputs.items()
        }
        body = json.dumps({"signature_name": signature, "inputs": columns})
        return body.encode()

    def headers(self):
        """Returns the headers of a request, a dict."""
        headers = {"Content-Type": "application/json"}
        if self.address.token:
            headers["Authorization"] = f"Basic {self.address.token}"
        return headers

    @staticmethod
    def limit(numbers):
        """Returns the bytes that an answer of some numbers may have."""
        return ANSWER_BYTES + JSON_BYTES * numbers

    def refusal(self, status, words):
        """Makes the `ServerError` of a status that is none of success.

        Args:
            status: int.
            words: str, the server's own.
        """
        return ServerError(
            f"{self.url}: status {status}, {self.address.clean(words)}",
            transient=status in TRANSIENT_STATUSES,
            status=status,
        )

    def no_answer(self, error):
        """Makes the `ServerError` of an exception of a connection."""
        reason = getattr(error, "reason", None) or error
        reason = str(reason) or type(reason).__name__
        return ServerError(
            f"{self.url}: {self.address.clean(reason)}", transient=True
        )

    def outputs(self, response, answer, numbers):
        """Reads the body of an answer.

        Args:
            response: `http.client.HTTPResponse` that it has come with.
            answer: bytes, as `read_at_most` returns them.
            numbers: int, see `predict`.

        Returns:
            Dict of arrays by the names of the outputs.

        Raises:
            ServerError: if it is too long, or no answer of a model.
        """
        limit = self.limit(numbers)
        if len(answer) > limit:
            raise ServerError(
                f"{self.url}: the answer is longer than the {limit} bytes that "
                f"{numbers} numbers take"
            )
        try:
            outputs = json.loads(answer)["outputs"]
            # A single output comes without its name.
            if not isinstance(outputs, dict):
                outputs = {"scores": outputs}
            return {name: np.asarray(rows) for name, rows in outputs.items()}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            start = answer.decode(errors="replace")
            raise ServerError(
                f"{self.url}: no answer of TensorFlow Serving. "
                f"Received: {self.address.clean(start)}",
                transient=may_be_cut(response, answer),
            ) from error

    def prepare(self, signature, inputs):
        """Returns all bytes of a request, for who sends it many times.

        Args:
            signature: str, the name of a signature.
            inputs: dict of lists of bytes, by the names of the inputs.
        """
        parts = urllib.parse.urlsplit(f"{self.url}:predict")
        body = self.body(signature, inputs)
        headers = {
            "Host": self.address.host,
            "Content-Length": len(body),
            "Connection": "close",
            **self.headers(),
        }
        lines = [f"POST {parts.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + body

    async def exchange(self, request, timeout_s, numbers):
        """Sends the bytes of a request over a connection of its own.

        Args:
            request: bytes, as `prepare` returns them.
            timeout_s: float, the seconds that the answer may take.
            numbers: int, see `predict`.

        Returns:
            Bytes of the answer with its headers, for `read`.

        Raises:
            ServerError: if there is no connection, or the time is over.
        """
        try:
            return await asyncio.wait_for(
                self.sent(request, numbers), timeout_s
            )
        except asyncio.TimeoutError:
            raise self.no_answer("timed out") from None
        except OSError as error:
            raise self.no_answer(error) from error

    async def sent(self, request, numbers):
        """Sends a request and reads all bytes that come; see `exchange`."""
        parts = urllib.parse.urlsplit(self.url)
        secure = parts.scheme == "https"
        reader, writer = await asyncio.open_connection(
            parts.hostname,
            parts.port or (443 if secure else 80),
            ssl=ssl.create_default_context() if secure else None,
        )
        try:
            writer.write(request)
            received, most = bytearray(), HEAD_BYTES + self.limit(numbers)
            while len(received) <= most:
                part = await reader.read(2**16)
                if not part:
                    break
                received += part
            return bytes(received)
        finally:
            writer.close()

    def read(self, received, numbers):
        """Reads an answer of which all bytes are there.

        Args:
            received: bytes, the headers and the body.
            numbers: int, see `predict`.

        Returns:
            Dict of arrays by the names of the outputs.

        Raises:
            ServerError: if it is no usable answer.
        """
        response = http.client.HTTPResponse(Received(received))
        try:
            response.begin()
            if not 200 <= response.status < 300:
                raise self.refusal(response.status, explain(response))
            answer = read_at_most(response, self.limit(numbers))
        except (OSError, http.client.HTTPException) as error:
            raise self.no_answer(error) from error
        return self.outputs(response, answer, numbers)

    def close(self):
        """Does nothing: there is no connection between requests."""


class Received:
    """Bytes that `http.client` reads as if they came from a socket."""

    def __init__(self, content):
        self.content = content

    def makefile(self, mode):
        """Returns a file of the bytes."""
        return io.BytesIO(self.content)


def read_at_most(response, limit):
    """Reads a response's body, whole or its first `limit + 1` bytes or more.

    Raises:
        TimeoutError: if the server takes longer than the request may.
        http.client.IncompleteRead: if the server promised more than it sent.
    """
    parts, size = [], 0
    while part := response.read1(2**16):
        parts.append(part)
        size += len(part)
        if size > limit:
            return b"".join(parts)
    # `read1` takes a connection that broke for the end.
    if response.length:
        raise http.client.IncompleteRead(b"".join(parts), response.length)
    return b"".join(parts)


def may_be_cut(response, answer):
    """Tells if a body whose length is not known is the beginning of JSON."""
    known = response.chunked or response.length is not None
    return (
        not known
        and answer.lstrip().startswith(b"{")
        and not answer.rstrip().endswith(b"}")
    )


def explain(refused):
    """Returns the server's own words in an `HTTPError` or an `HTTPResponse`."""
    try:
        content = read_at_most(refused, MAX_ERROR_BYTES)
    except (OSError, http.client.HTTPException):
        content = b""
    try:
        return str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return content.decode(errors="replace") or str(refused.reason)


class Grpc:
    """Requests to `tensorflow.serving.PredictionService`, unencrypted.

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
        self.address = dataclasses.replace(address, host=host)
        self.limit = 0
        self.channel = None

    def connect(self, limit):
        """Opens a channel that takes messages of up to `limit` bytes."""
        # They import TensorFlow, which takes seconds.
        import grpc
        from tensorflow_serving.apis import prediction_service_pb2_grpc

        self.close()
        self.limit = limit
        self.failure = grpc.RpcError
        self.channel = grpc.insecure_channel(
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
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(
            self.channel
        )

    def predict(self, signature, inputs, timeout_s, numbers):
        """Runs a signature; arguments and result are as in `Rest.predict`."""
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2

        limit = ANSWER_BYTES + PROTO_BYTES * numbers
        if limit > self.limit:
            self.connect(limit)
        request = predict_pb2.PredictRequest()
        request.model_spec.name = self.address.model_name
        request.model_spec.signature_name = signature
        if self.address.version is not None:
            request.model_spec.version.value = self.address.version
        for name, rows in inputs.items():
            request.inputs[name].CopyFrom(
                tf.make_tensor_proto(rows, tf.string, [len(rows)])
            )
        try:
            response = self.stub.Predict(request, timeout=timeout_s)
        except self.failure as error:
            code, words = error.code().name, error.details() or ""
            raise ServerError(
                f"{self.address.url}: {code}, {self.address.clean(words)}",
                transient=code in TRANSIENT_CODES and TOO_LONG not in words,
                status=code,
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
        """Closes the channel."""
        if self.channel is not None:
            self.channel.close()


TRANSPORTS = {"http": Rest, "https": Rest, "grpc": Grpc}
