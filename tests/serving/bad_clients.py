"""Clients that send what is no request, half a one, or one byte a second."""

import contextlib
import http.client
import socket
import time
import urllib.parse

import numpy as np

BAD_REQUESTS = [
    b"{",
    b"\xff\xfe\x00",
    b"[]",
    b'{"instances": []}',
    b'{"instances": [[0.1, 0.2], [0.1]]}',
    b'{"inputs": {"waveform": [["high"]]}}',
    b'{"signature_name": "sing", "instances": [[0.1]]}',
    b'{"signature_name": "serving_audio_bytes",'
    b' "inputs": {"audio_bytes": [{"b64": "?"}]}}',
]
PATH = "/v1/models/audio_tf:predict"
# What a proxy says while no copy is up, or too many ask.
DOWN = (502, 503, 504)
# Slow clients come from another address than good ones, as they would.
SLOW_ADDRESS = "127.0.0.2"


def connect(url, source=""):
    """A connection to the server of a URL."""
    parts = urllib.parse.urlsplit(url)
    return socket.create_connection(
        (parts.hostname, parts.port), 10.0, (source, 0)
    )


def post(url, path, body):
    """The status that a body gets."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.hostname, parts.port, timeout=30.0
    )
    with contextlib.closing(connection):
        connection.request(
            "POST", path, body, {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        response.read()
        return response.status


def bad_request(urls, rng):
    """A body that is no request: 400."""
    body = BAD_REQUESTS[rng.integers(len(BAD_REQUESTS))]
    return post(urls["rest"], PATH, body), (400,)


def unknown_model(urls, rng):
    return post(urls["rest"], "/v1/models/birds:predict", b"{}"), (400, 404)


def unknown_path(urls, rng):
    return post(urls["rest"], "/admin", b"{}"), (404, 405)


def gone(urls, rng):
    """A client that leaves in the middle of its request."""
    with connect(urls["rest"]) as half:
        half.sendall(head(100_000) + b"{")
    return None, (None,)


def noise(urls, rng):
    """Bytes that are no protocol, to both ports."""
    for url in urls.values():
        with connect(url) as connection, contextlib.suppress(OSError):
            connection.sendall(rng.bytes(int(rng.integers(1, 5_000))))
            connection.settimeout(1.0)
            connection.recv(1_000)
    return None, (None,)


def too_long(urls, rng):
    """A body that would fill the memory, by its own account."""
    with connect(urls["rest"]) as connection:
        connection.sendall(head(2**40))
        answer = connection.recv(1_000)
    return int(answer.split()[1]) if answer else None, (413, None)


BAD = [bad_request] * 4 + [unknown_model, unknown_path, gone, noise, too_long]


def head(length):
    """The beginning of a request whose body has a length in bytes."""
    return (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def be_bad(urls, seed, stop, counts, violations):
    """Sends one bad thing after the other until it is told to stop."""
    rng = np.random.default_rng(seed)
    while not stop.is_set():
        kind = BAD[rng.integers(len(BAD))]
        try:
            status, right = kind(urls, rng)
        except (OSError, http.client.HTTPException, ValueError):
            status, right = None, (None,)
        counts["bad"] += 1
        if status not in (*right, *DOWN):
            violations.append(f"{kind.__name__}: status {status}")
        stop.wait(0.2)


def be_slow(url, body, stop, counts, reads):
    """Sends or, with `reads`, takes one byte a second, and begins anew.

    Args:
        url: of the server.
        body: bytes of a good request.
        stop: `threading.Event` that ends it.
        counts: dict whose `slow bytes` are added to.
        reads: bool, whether it is the answer that goes slowly.
    """
    request = head(len(body)) + body
    while not stop.is_set():
        with contextlib.suppress(OSError), connect(url, SLOW_ADDRESS) as slow:
            if reads:
                slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
                slow.sendall(request)
            for number in range(len(request)):
                if stop.wait(1.0):
                    break
                if reads:
                    if not slow.recv(1):
                        break
                else:
                    slow.sendall(request[number : number + 1])
                counts["slow bytes"] += 1
        time.sleep(0.1)
