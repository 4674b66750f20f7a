"""Texts to copy from the page: an answer as JSON, a command for a shell."""

import json
import shlex
import urllib.parse

from audio_tf.app import samples

TOP = 5  # As many labels as `audio-tf classify` prints.


def as_json(found):
    """Returns the line that `audio-tf classify --json` prints of an answer.

    Args:
        found: dict as `AudioClassifier.classify` returns it.
    """
    if "error" not in found:
        scores = dict(list(found["scores"].items())[:TOP])
        found = {**found, "scores": scores}
    return json.dumps(found, allow_nan=False)


def command(address, file, model):
    """Returns a shell command that has the running page classify a file.

    Args:
        address: str, where the page is served.
        file: str, the name of the file.
        model: str, the name of the model.
    """
    query = urllib.parse.urlencode({"model": model})
    url = shlex.quote(f"{address}/classify?{query}")
    if file in samples.FILES:
        return (
            f"curl -s {address}/samples/{file} | "
            f"curl -F {shlex.quote(f'file=@-;filename={file}')} {url}"
        )
    # Curl takes the first two for the end of the name.
    if set(file) & set(',;"\\'):
        file = '"' + file.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"curl -F {shlex.quote(f'file=@{file}')} {url}"
