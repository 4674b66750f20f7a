"""Copies of the stand-in for a server, one or several, behind nginx."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from serving import kit, process

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
# More than the queue of batches holds when each request has one clip: it is
# the scheduler of batches that refuses, and not a pool that lets them wait.
BATCHING_THREADS = 256


def has_nginx():
    """Whether nginx is there: Debian's package `nginx-light` is enough."""
    return os.access(NGINX, os.X_OK)


def proxy_config(text, rest_ports, grpc_ports, port, grpc_port, pid):
    """`serving/nginx.conf` with other ports.

    Args:
        text: of the file.
        rest_ports, grpc_ports: of the copies.
        port, grpc_port: what nginx listens on.
        pid: path of the file with its process number.
    """
    for name, (own, ports) in {
        "8501": (8501, rest_ports),
        "8500": (8500, grpc_ports),
    }.items():
        (line,) = re.findall(rf"^ *server 127\.0\.0\.1:{name} .*\n", text, re.M)
        lines = [line.replace(str(own), str(each)) for each in ports]
        text = text.replace(line, "".join(lines))
    text = text.replace("listen 127.0.0.1:8601 ", f"listen 127.0.0.1:{port} ")
    text = text.replace(
        "listen 127.0.0.1:8600 ", f"listen 127.0.0.1:{grpc_port} "
    )
    return text.replace("pid /tmp/audio_tf_nginx.pid;", f"pid {pid};")


class Copy:
    """One copy: where it listens, and its process.

    Attributes:
        folder: of the model that it serves.
        port, grpc_port: int, of loopback.
        log: path of what it prints.
        process: `subprocess.Popen`, or `None` before its start.
    """

    def __init__(self, folder, log):
        self.folder = folder
        self.port = process.free_port()
        self.grpc_port = process.free_port()
        self.log = log
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"


class Fleet:
    """Copies and their proxy, from the beginning to the end of a block.

    Args:
        folder: of the model, with a folder for each version.
        scratch: folder for logs and the proxy's configuration.
        copies: int, how many.
        batching: bool, whether requests are merged.
        proxy: bool, whether nginx stands before the copies. Without it there
            is one copy.
        python: path of a Python with kserve.

    Attributes:
        copies: list of `Copy`.
        nginx: `subprocess.Popen`, or `None`.
    """

    def __init__(
        self,
        folder,
        scratch,
        copies=1,
        batching=True,
        proxy=True,
        python=process.PYTHON,
    ):
        if copies > 1 and not proxy:
            raise ValueError(f"several copies want a proxy: copies={copies}")
        self.scratch = pathlib.Path(scratch)
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.python = python
        cores = max(1, len(os.sched_getaffinity(0)) // copies)
        self.flags = ["--poll", "0.5", "--cores", str(cores)]
        if batching:
            self.flags += ["--threads", str(BATCHING_THREADS)]
            file = kit.SERVING / "batching_parameters.txt"
            self.flags += ["--batching", str(file)]
        self.copies = [self.new(folder) for _ in range(copies)]
        self.nginx = None
        self.proxied = proxy
        self.port, self.grpc_port = process.free_port(), process.free_port()

    def new(self, folder):
        """A copy that is not started and that the proxy does not know."""
        name = f"server_{len(list(self.scratch.glob('server_*')))}.log"
        (self.scratch / name).touch()
        return Copy(folder, self.scratch / name)

    @property
    def urls(self):
        """Dict by transport of what a client asks."""
        door = self if self.proxied else self.copies[0]
        return {
            "rest": f"http://127.0.0.1:{door.port}",
            "grpc": f"grpc://127.0.0.1:{door.grpc_port}",
        }

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            for copy in self.copies:
                self.start(copy)
            for copy in self.copies:
                self.await_ready(copy)
            if self.proxied:
                self.start_proxy()
            undo.pop_all()
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Ends all processes at once."""
        for running in [self.nginx, *(copy.process for copy in self.copies)]:
            if running and running.poll() is None:
                running.terminate() if running is self.nginx else running.kill()
                running.wait()

    def start(self, copy):
        """Starts a copy, and does not wait for it."""
        flags = [*self.flags, "--grpc-port", str(copy.grpc_port)]
        copy.process = process.start(
            copy.folder, copy.port, copy.log, flags, self.python
        )

    def await_ready(self, copy):
        """Waits until a copy answers."""
        process.await_ready(copy.process, copy.url, copy.log)

    def kill(self, copy):
        """Ends a copy as a lack of memory would."""
        copy.process.kill()
        copy.process.wait()

    def drain(self, copy):
        """Ends a copy that answers first what it took."""
        copy.process.terminate()
        copy.process.wait()

    def write_config(self):
        """Tells the proxy's file which copies there are."""
        path = self.scratch / "nginx.conf"
        text = proxy_config(
            (kit.SERVING / "nginx.conf").read_text(),
            [copy.port for copy in self.copies],
            [copy.grpc_port for copy in self.copies],
            self.port,
            self.grpc_port,
            self.scratch / "nginx.pid",
        )
        path.write_text(text)
        return path

    def start_proxy(self):
        """Starts nginx and waits until it answers."""
        with open(self.scratch / "nginx.log", "ab") as log:
            self.nginx = subprocess.Popen(
                [NGINX, "-c", self.write_config(), "-g", "daemon off;"],
                stderr=log,
            )
        url = self.urls["rest"]
        process.await_ready(self.nginx, url, self.scratch / "nginx.log")

    def reload_proxy(self, seconds=1.0):
        """Lets nginx read which copies there are, and waits for that.

        Requests under way are answered by the workers that took them.
        """
        self.write_config()
        self.nginx.send_signal(signal.SIGHUP)
        time.sleep(seconds)

    def pids(self):
        """Dict by name of the numbers of the processes that serve."""
        found = {
            f"server {number}": copy.process.pid
            for number, copy in enumerate(self.copies)
        }
        if self.nginx:
            children = f"/proc/{self.nginx.pid}/task/{self.nginx.pid}/children"
            for worker in pathlib.Path(children).read_text().split():
                found[f"nginx {worker}"] = int(worker)
        return found
