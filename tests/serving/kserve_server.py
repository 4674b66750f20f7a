"""A SavedModel over HTTP and gRPC on loopback: a stand-in.

    PYTHONPATH=tests python -m serving.kserve_server models/audio_tf \
        --port 8501 --grpc-port 8500 --batching serving/batching_parameters.txt

KServe's V1 protocol has the URLs of TensorFlow Serving; `served.py` decodes
the JSON as it does, `grpc_server.py` has its gRPC, TensorFlow itself merges
requests. A new version in the model's folder is served as soon as it is
loaded, and the old one until then. Needs no audio_tf. Listens on 127.0.0.1
alone.
"""

import argparse
import asyncio
import concurrent.futures
import functools
import os
import pathlib
import threading

import kserve
import kserve.errors
import kserve.model_server
import tensorflow as tf
from kserve.logging import logger

from serving import grpc_server, kit, served

# Threads that answer by REST, as many as TensorFlow Serving has by default.
THREADS = 4 * len(os.sched_getaffinity(0))


class Versions:
    """The newest version in a folder, which may change meanwhile.

    Args:
        folder: of the model with a folder for each version, or of a version.
        batching: as `served.Served` takes it.

    Attributes:
        version: str, the name of the version's folder.
        model: `served.Served`, the version that answers.
    """

    def __init__(self, folder, batching=None):
        self.folder = pathlib.Path(folder)
        self.batching = batching
        self.version = self.model = None
        self.refresh()

    def refresh(self):
        """Loads the newest version if it is not the one that answers."""
        path = newest(self.folder)
        if path.name == self.version:
            return
        model = served.Served(path, self.batching)
        # A first call of each signature would make a user wait.
        model.run(served.SIGNATURE, {"audio_bytes": [b""]})
        # Requests under way keep the old one until they are answered.
        self.version, self.model = path.name, model
        logger.info("version %s answers", self.version)

    def watch(self, seconds):
        """Looks for a newer version now and then, until the process ends."""
        while True:
            threading.Event().wait(seconds)
            try:
                self.refresh()
            except Exception as error:
                # A version that cannot be loaded leaves the old one.
                logger.error("not loaded: %r", error)

    def run(self, name, inputs):
        """As `served.Served.run`, by the version of the moment."""
        return self.model.run(name, inputs)


class SavedModel(kserve.Model):
    """A model of KServe that runs signatures.

    Args:
        name: in the URL.
        versions: `Versions`.
        threads: int, the requests that are answered at a time.
    """

    def __init__(self, name, versions, threads=THREADS):
        super().__init__(name)
        self.versions = versions
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.ready = True

    async def predict(self, payload, headers=None):
        """Answers in a thread: the loop must go on taking requests."""
        answer = functools.partial(self.answer, payload)
        return await asyncio.get_running_loop().run_in_executor(
            self.pool, answer
        )

    def answer(self, payload):
        try:
            # KServe leaves a body of another content type as bytes.
            if isinstance(payload, bytes):
                payload = served.parse(payload)
            return self.versions.model.answer(payload)
        except served.BadRequest as error:
            raise kserve.errors.InvalidInput(str(error)) from error
        except served.Overloaded as error:
            raise kserve.errors.ModelNotReady(self.name, str(error)) from error


class LoopbackServer(kserve.model_server.RESTServer):
    """KServe listens to the whole network, with no argument against it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.config.host = "127.0.0.1"


def newest(folder):
    """The folder itself or its highest version."""
    folder = pathlib.Path(folder)
    if (folder / "saved_model.pb").is_file():
        return folder
    numbers = [int(one.name) for one in folder.iterdir() if one.name.isdigit()]
    return folder / str(max(numbers))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", help="of the model or of one version")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--grpc-port", type=int)
    parser.add_argument("--model-name", default="audio_tf")
    parser.add_argument("--batching", help="file of BatchingParameters")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--cores", type=int, help="threads of one operation")
    parser.add_argument(
        "--poll", type=float, metavar="SECONDS", help="look for new versions"
    )
    arguments = parser.parse_args()
    if arguments.cores:
        tf.config.threading.set_intra_op_parallelism_threads(arguments.cores)
        tf.config.threading.set_inter_op_parallelism_threads(arguments.cores)
    batching = arguments.batching and kit.batching(arguments.batching)
    versions = Versions(arguments.folder, batching)
    if arguments.poll:
        threading.Thread(
            target=versions.watch, args=(arguments.poll,), daemon=True
        ).start()
    calls = None
    if arguments.grpc_port:
        calls, _ = grpc_server.start(
            grpc_server.Predictions(versions, arguments.model_name),
            arguments.grpc_port,
            arguments.threads,
        )
    kserve.model_server.RESTServer = LoopbackServer
    # It comes back when it was told to end and has answered what it took.
    kserve.ModelServer(
        http_port=arguments.port,
        enable_grpc=False,
        workers=1,
        enable_latency_logging=False,
    ).start([SavedModel(arguments.model_name, versions, arguments.threads)])
    if calls:
        calls.stop(grace=10.0).wait()


if __name__ == "__main__":
    main()
