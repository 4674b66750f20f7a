"""Requests to a server in TensorFlow Serving's JSON."""

import asyncio
import base64
import functools
import http.client
import io
import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request

import numpy as np

from audio_tf.client.address import ServerError, lasting_reason
from audio_tf.client.connections import NoRedirects, TimedHandler

# Too many requests, no one behind the proxy, model not loaded, too slow.
TRANSIENT_STATUSES = {429, 502, 503, 504}

MAX_ERROR_BYTES = 2**16
HEAD_BYTES = 2**16  # Of an answer, without its body.
# The bytes that an answer may have: for names and white space, and for each
# number, with what stands between two of them.
ANSWER_BYTES = 2**16
JSON_BYTES = 64


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
            NoRedirects, TimedHandler(clock)
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
        # What urllib wraps. Errors of TLS have a `reason` of their own, which
        # is a part of what they say.
        wrapped = isinstance(error, urllib.error.URLError)
        error = error.reason if wrapped else error
        lasting = lasting_reason(error)
        reason = lasting or str(error) or type(error).__name__
        return ServerError(
            f"{self.url}: {self.address.clean(reason)}",
            transient=lasting is None,
            answered=False,
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

        The answer ends with the length that it tells, or where the server
        ends the connection, as `prepare` asks it to.

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
            ssl=trusted() if secure else None,
        )
        try:
            writer.write(request)
            received, most = bytearray(), HEAD_BYTES + self.limit(numbers)
            while len(received) <= most and not is_whole(received):
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


@functools.cache
def trusted():
    """Returns the TLS context of this machine's certificates, read once."""
    return ssl.create_default_context()


class Received:
    """Bytes that `http.client` reads as if they came from a socket."""

    def __init__(self, content):
        self.content = content

    def makefile(self, mode):
        """Returns a file of the bytes."""
        return io.BytesIO(self.content)


def is_whole(received):
    """Tells if all bytes of an answer are there, by the length that it tells.

    Some servers and proxies leave a connection open that they were asked to
    end. Who tells no length, as with chunks, ends the connection.

    Args:
        received: bytes, the first of an answer.
    """
    head, end, body = received.partition(b"\r\n\r\n")
    if not end:
        return False
    length = re.search(rb"\r\ncontent-length:[ \t]*(\d+)", head.lower())
    return length is not None and len(body) >= int(length[1])


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
