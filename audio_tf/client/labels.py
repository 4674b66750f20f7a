"""The labels of a server's model, which its answers have not."""

import collections
import json
import pathlib

EXTRA = "assets.extra"  # The folder of an export's labels in its version.


def read_labels(path):
    """Reads the labels of a model, and the texts of its error codes.

    Args:
        path: path of `assets.extra/audio_tf.json` of an export, of another
            JSON file with a list of labels, or of a vocabulary: FSD50K's
            `index,label,mid`, or one label a line.

    Returns:
        Pair of the labels and of the error texts by their codes, each a list
        of str or `None`.

    Raises:
        OSError: if there is no such file, or it cannot be read.
        ValueError: if the path is that of a folder, the file holds no labels,
            or one of them is empty or there twice. The message names the path.

    Examples:
        >>> from audio_tf import client
        >>> with open("labels.txt", "w") as file:
        ...     print("dog", file=file)
        ...     print("rain", file=file)
        >>> client.read_labels("labels.txt")
        (['dog', 'rain'], None)
    """
    # Labels need not be asked for, and these load what decodes audio.
    from audio_tf.corpora.labels import read_vocabulary
    from audio_tf.corpora.lists import check_not_utf16, check_utf8

    path = pathlib.Path(path)
    if path.is_dir():
        raise ValueError(
            f"{path}: labels must be in a file, those of an export are in "
            f"{EXTRA}/audio_tf.json of the folder of its version"
        )
    if path.suffix != ".json":
        return read_vocabulary(path), None
    text = path.read_bytes().decode("utf-8-sig", errors="surrogateescape")
    check_not_utf16(path, text)
    for number, line in enumerate(text.splitlines(), start=1):
        check_utf8(f"{path}, line {number}", line)
    try:
        described = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: no labels ({error})") from error
    if not isinstance(described, dict):
        described = {"labels": described}
    labels, errors = described.get("labels"), described.get("errors")
    if "labels" not in described or not all(
        texts is None or is_texts(texts) for texts in (labels, errors)
    ):
        raise ValueError(
            f"{path}: must hold a list of labels, or a dict with `labels` and "
            f"`errors`. Received: labels={type(labels).__name__}, "
            f"errors={type(errors).__name__}, keys={sorted(described)}"
        )
    if labels is not None:
        counts = collections.Counter(labels)
        twice = [label for label, count in counts.items() if count > 1]
        if twice or not labels or not all(map(str.strip, labels)):
            raise ValueError(
                f"{path}: each label must be there once, and none be empty. "
                f"Received: {len(labels)} labels, twice are {twice}"
            )
    return labels, errors


def check_version(path, version):
    """Raises a `ValueError` if labels are those of another version.

    Args:
        path: path of a file of labels. In an export it lies in the folder of
            a version; elsewhere nothing is known of its version.
        version: int, the version that a server is asked for, or `None`.
    """
    path = pathlib.Path(path).absolute()
    folder = path.parents[1].name if len(path.parents) > 1 else ""
    exported = path.parent.name == EXTRA and folder.isdecimal()
    if version is not None and exported and int(folder) != version:
        raise ValueError(
            "`labels` must be of the version that the URL names, /versions/"
            f"{version}. Received: {path}, of version {int(folder)}"
        )


def is_texts(value):
    """Returns whether a value of JSON is a list of strings."""
    return isinstance(value, list) and all(
        isinstance(text, str) for text in value
    )
