"""The page on this machine's own address, and on no other."""

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import webbrowser

from audio_tf import console
from audio_tf.app import answering, samples, texts
from audio_tf.app.uploads import Uploads
from audio_tf.ops.checks import reject_unknown
from audio_tf.terminal import printable

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
# A form around a file.
MAX_BODY = answering.MAX_BYTES + 2**16
SWEEP_S = 20.0
FORM = "`file` must be the one file of a form, as by curl -F 'file=@dog.wav'"
IN_ADDRESS = ("model", "top")  # Behind the question mark.
# Where Gradio gives files back; the second is its older address of the same.
STORED = ("/gradio_api/file=", "/gradio_api/file/")
# The browser refuses what is from elsewhere, whatever a page may ask for.
POLICY = "; ".join(
    [
        "default-src 'self'",
        # Gradio makes functions of its templates.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "media-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
# What Gradio brings may be kept by the browser, and nothing else.
BROUGHT = ("/assets/", "/static/")


class TooLarge(Exception):
    """A body is larger than any that the page takes."""


class Guard:
    """Refuses requests that are too large or of another page.

    Args:
        app: the ASGI application within.
        uploads: `uploads.Uploads`.
    """

    def __init__(self, app, uploads):
        self.app = app
        self.uploads = uploads

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        reason, status = self.refusal(scope["method"], scope["path"], headers)
        if reason is not None:
            await refuse(send, status, reason)
            return
        taken, gone = 0, False

        async def receive_some():
            nonlocal taken, gone
            message = await receive()
            gone = message["type"] == "http.disconnect"
            taken += len(message.get("body", b""))
            if taken > MAX_BODY:
                raise TooLarge
            return message

        async def send_guarded(message):
            # What is within would answer 500 to `TooLarge`.
            if taken > MAX_BODY:
                return
            if message["type"] == "http.response.start":
                stored = scope["path"].startswith(BROUGHT)
                headers = own(message["headers"], stored)
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self.app(scope, receive_some, send_guarded)
        except TooLarge:
            await refuse(send, 413, answering.too_large(taken))
        except Exception:
            # Who left in the middle of an upload has no use for an answer,
            # nor the terminal for where in Starlette that was found out.
            if not gone:
                raise

    def refusal(self, method, path, headers):
        """Returns why a request is refused, and the status of HTTP."""
        host = headers.get("host", "").rsplit(":", 1)[0]
        if host not in NAMES:
            # Another site's name may lead here.
            return f"this page is served to {HOST} alone", 403
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers['host']}":
            return "this page takes no requests of other pages", 403
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > MAX_BODY:
            return answering.too_large(int(length)), 413
        if method == "POST" and self.uploads.are_too_many():
            return "too many sounds are waiting for their answers", 503
        if path.startswith(STORED):
            # Gradio's player asks for the sound that the browser has sent.
            return "the page gives no file back", 404
        return None, None


def own(headers, stored=False):
    """Returns the headers of an answer with ours, which stand alone.

    Args:
        headers: list of pairs of bytes.
        stored: bool, whether the browser may keep the answer.
    """
    ours = HEADERS if stored else {**HEADERS, "cache-control": "no-store"}
    kept = [
        (name, value)
        for name, value in headers
        if name.decode("latin-1").lower() not in ours
    ]
    return kept + [
        (name.encode(), value.encode()) for name, value in ours.items()
    ]


async def refuse(send, status, reason):
    """Answers with one line of text and closes the connection."""
    body = f"{reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": own(headers),
        }
    )
    await send({"type": "http.response.body", "body": body})


def read_query(pairs):
    """Reads what an address says behind its question mark.

    Args:
        pairs: list of pairs of str, names and values in their order.

    Returns:
        Dict of `model`, a str, and `top`, an int, of those that are said.

    Raises:
        TypeError: if there is an unknown name.
        ValueError: if a name is there twice, or `top` is no integer.
    """
    query = dict(pairs)
    reject_unknown("The address", query, IN_ADDRESS)
    for name in query:
        values = [value for each, value in pairs if each == name]
        if len(values) > 1:
            received = ", ".join(f"{name}={each}" for each in values)
            raise ValueError(
                f"The address takes {name!r} once. "
                f"Received: {printable(received, 200)}"
            )
    if "top" in query:
        try:
            query["top"] = int(query["top"])
        except ValueError:
            raise ValueError(
                "`top` must be an integer. "
                f"Received: top={printable(query['top'], 200)}"
            ) from None
    return query


def file_of(pairs):
    """Returns the file of a form, which has nothing else.

    Args:
        pairs: list of pairs of a name and of a file, or of a text.

    Raises:
        ValueError: if there is no file of that name, or more. What the
            address says would count for nothing as a field of the form.
    """
    names = [name for name, _ in pairs]
    if names == ["file"] and not isinstance(pairs[0][1], str):
        return pairs[0][1]
    fields = ", ".join(printable(name, 200) for name in names)
    hint = "".join(
        f"; `{name}` stands in the address, behind its ?"
        for name in IN_ADDRESS
        if name in names
    )
    raise ValueError(f"{FORM}{hint}. Received: the fields {fields or 'none'}")


def application(models, address, uploads):
    """Makes the page and its routes for commands as one application.

    Args:
        models: `answering.Models`.
        address: str, where it is served.
        uploads: `uploads.Uploads`.

    Returns:
        An ASGI application.

    Raises:
        ImportError: if Gradio is not installed.
    """
    # Gradio reads them when it is imported.
    os.environ["GRADIO_TEMP_DIR"] = str(uploads.folder)
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    try:
        import fastapi
        import gradio
        import starlette.exceptions
    except ImportError as error:
        raise ImportError(
            "The page needs Gradio: pip install 'audio_tf[app]'"
        ) from error
    from audio_tf.app import page

    app = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/samples/{file}")
    def sample(file: str):
        if file not in samples.FILES:
            raise fastapi.HTTPException(404, "no sample of this name")
        content = samples.content(samples.FILES[file])
        return fastapi.Response(content, media_type="audio/wav")

    @app.post("/classify")
    async def classify(request: fastapi.Request):
        try:
            async with request.form(max_files=1, max_fields=1) as form:
                file = file_of(form.multi_items())
                name, content = file.filename, await file.read()
        except starlette.exceptions.HTTPException as error:
            return as_text(400, error=f"{FORM}. Received: {error.detail}")
        except ValueError as error:
            return as_text(400, error=str(error))
        return await fastapi.concurrency.run_in_threadpool(
            answer_request,
            models,
            request.query_params.multi_items(),
            name,
            content,
        )

    def as_text(status, **found):
        content = json.dumps(found, allow_nan=False) + "\n"
        return fastapi.Response(content, status, media_type="application/json")

    def answer_request(models, pairs, name, content):
        try:
            query = read_query(pairs)
            clip = answering.read_clip(name, content)
            found = models.classify(
                query.get("model", models.names[0]),
                clip,
                query.get("top", texts.TOP),
            )
        except (TypeError, ValueError) as error:
            return as_text(400, error=console.one_line(error))
        status = 413 if len(content) > answering.MAX_BYTES else 422
        return as_text(status if "error" in found else 200, **found)

    gradio.mount_gradio_app(
        app,
        page.build(models, address, uploads),
        path="/",
        server_name=HOST,
        footer_links=[],
        run_history=False,
        show_error=True,
        max_file_size=answering.MAX_BYTES,
        ssr_mode=False,
        enable_monitoring=False,
        pwa=False,
        mcp_server=False,
        head=page.HEAD,
    )
    return Guard(app, uploads)


def open_socket(port):
    """Opens the port that the page is served on.

    Args:
        port: int; 0 for any that is free.

    Returns:
        A `socket.socket`, which is closed by whoever uses it.

    Raises:
        OSError: if the port is in use.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((HOST, port))
    except OSError as error:
        opened.close()
        raise OSError(
            f"`port` is not free: {error.strerror}. Received: port={port}"
        ) from error
    return opened


def sweep(uploads):
    """Deletes old uploads again and again.

    Args:
        uploads: `uploads.Uploads`.
    """
    while True:
        time.sleep(SWEEP_S)
        uploads.sweep()


def serve(models, port, browse=False):
    """Serves the page until the process is told to end.

    Uploads are in a folder of its own, which goes with it.

    Args:
        models: `answering.Models`.
        port: int; 0 for any that is free.
        browse: bool, whether to open the page in a browser.

    Raises:
        ImportError: if Gradio is not installed.
        OSError: if the port is in use.
    """
    with (
        contextlib.closing(open_socket(port)) as opened,
        tempfile.TemporaryDirectory(prefix="audio_tf_app_") as folder,
    ):
        address = f"http://{HOST}:{opened.getsockname()[1]}"
        uploads = Uploads(folder)
        app = application(models, address, uploads)
        import uvicorn

        class Server(uvicorn.Server):
            """A server that says when it is there."""

            async def startup(self, sockets=None):
                await super().startup(sockets)
                print(f"{address} (Ctrl-C ends it)", flush=True)
                if browse:
                    webbrowser.open(address)

        server = Server(
            uvicorn.Config(app, log_level="warning", server_header=False)
        )
        # Of two numbers of chunks, after which Keras traces no more graphs.
        for name in samples.SAMPLES:
            clip = answering.read_clip(name, samples.content(name))
            models.answer(models.names[0], clip)

        threading.Thread(target=sweep, args=[uploads], daemon=True).start()
        # Uvicorn ends by the signal that it was given, before the folder goes.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[opened])
