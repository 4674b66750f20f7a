"""An HTTP server in this process that answers as a test asks it to."""

import contextlib
import http.server
import json
import threading

from serving import served


class RestServer(http.server.ThreadingHTTPServer):
    """Answers with the model, after what a test asks for.

    Attributes:
        answers: list of pairs of status and body, `bytes`, or of `None` for
            no answer before the server stops; each request takes the first.
            A third member, a dict, replaces or adds headers.
        requests: list of pairs of path and what the JSON body holds.
        headers: list of the headers of each request.
        keeps_open: bool, whether a connection stays open that a client asks
            to end.
        url: `http://127.0.0.1:PORT`.

    Args:
        model: `served.Served`, or `None` if `answers` are enough.
    """

    daemon_threads = True

    def __init__(self, model=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.model = model
        self.answers = []
        self.requests = []
        self.headers = []
        self.keeps_open = False
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.stopped = threading.Event()
        threading.Thread(
            target=self.serve_forever, args=(0.01,), daemon=True
        ).start()

    def stop(self):
        """Closes the port and lets waiting requests go."""
        self.stopped.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        self.server.requests.append((self.path, request))
        self.server.headers.append(self.headers)
        headers = {}
        if self.server.answers:
            answer = self.server.answers.pop(0)
            if answer is None:
                self.server.stopped.wait()
                return
            status, content, headers = (*answer, {})[:3]
        else:
            status, content = self.predict(request)
        self.send_response(status)
        headers = {"Content-Length": str(len(content)), **headers}
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(content)
        if self.server.keeps_open:
            self.server.stopped.wait()

    def predict(self, request):
        try:
            return 200, json.dumps(self.server.model.answer(request)).encode()
        except served.BadRequest as error:
            return 400, json.dumps({"error": str(error)}).encode()

    def log_message(self, *arguments):
        """Nothing: the tests look into `requests`."""
