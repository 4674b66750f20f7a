"""A SavedModel over HTTP on loopback, by KServe.

    python tests/serving/kserve_server.py models/audio_tf --port 8501

KServe's V1 protocol has the URLs of TensorFlow Serving; `served.py` decodes
the JSON as it does. Needs no audio_tf. Listens on 127.0.0.1 alone.
"""

import argparse
import asyncio
import pathlib

import kserve
import kserve.errors
import kserve.model_server
import served


class SavedModel(kserve.Model):
    """A model of KServe that runs signatures.

    Args:
        name: in the URL.
        folder: of the SavedModel.
    """

    def __init__(self, name, folder):
        super().__init__(name)
        self.served = served.Served(folder)
        self.ready = True

    async def predict(self, payload, headers=None):
        """Answers in a thread: the loop must go on taking requests."""
        return await asyncio.to_thread(self.answer, payload)

    def answer(self, payload):
        try:
            # KServe leaves a body of another content type as bytes.
            if isinstance(payload, bytes):
                payload = served.parse(payload)
            return self.served.answer(payload)
        except served.BadRequest as error:
            raise kserve.errors.InvalidInput(str(error)) from error


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="of the model or of one version")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model-name", default="audio_tf")
    arguments = parser.parse_args()
    kserve.model_server.RESTServer = LoopbackServer
    model = SavedModel(arguments.model_name, newest(arguments.folder))
    kserve.ModelServer(
        http_port=arguments.port, enable_grpc=False, workers=1
    ).start([model])


if __name__ == "__main__":
    main()
