"""Audio beside a corpus, which has no labels: it is listed, and told apart."""

import os

from audio_tf import data
from audio_tf.audio.audio_files import list_files
from audio_tf.corpora import Corpus
from audio_tf.runs import provenance
from audio_tf.runs.settings import flag

# Their names, beside those of splits, are those of the settings.
UNLABELLED = "unlabelled"
NOISE = "noise"
BESIDE = (UNLABELLED, NOISE)


def listed(given, vocabulary):
    """Lists audio without labels.

    Args:
        given: list of str, files, folders or patterns.
        vocabulary: list of str, the labels of the corpus that it is beside.

    Returns:
        `Corpus` of each file once, without labels.

    Raises:
        FileNotFoundError: if there is no such file or folder, a folder holds
            no audio, or a pattern matches none.
    """
    # A file may be named, and be in a folder that is named from elsewhere.
    once = {os.path.abspath(file): str(file) for file in list_files(given)}
    found = list(once.values())
    for file in found:
        if provenance.size_of(file) == provenance.MISSING:
            raise FileNotFoundError(f"{file}: no such file or folder")
    return Corpus(found, [[] for _ in found], vocabulary)


def roots(corpora):
    """Returns the folders that names of files beside a corpus are relative to.

    Args:
        corpora: dict of `Corpus` by split, maybe with names of `BESIDE`.

    Returns:
        List of the paths of the folders that all files of a name are below.
    """
    found = []
    for name in BESIDE:
        if name in corpora:
            files = map(os.path.abspath, corpora[name].files)
            found.append(os.path.commonpath([*map(os.path.dirname, files)]))
    return found


def same_audio(settings, clips):
    """Finds clips that are in two splits.

    Args:
        settings: `TrainSettings`.
        clips: dict of `Clips` by split, maybe with names of `BESIDE`.

    Returns:
        List of `leaks.Leak`. That audio beside the corpus is there twice, or
        is trained on with a label, too, is no leak.

    Raises:
        ValueError: if it is a clip that is scored, unless `other_splits`
            allows it.
    """
    found = []
    for leak in data.same_audio(clips):
        among = [name for name in BESIDE if name in leak.splits]
        if among:
            if set(leak.splits) <= {"train", *BESIDE}:
                continue
            if not settings.other_splits:
                raise ValueError(
                    f"{flag(among[0])} must not hold clips that are scored; "
                    "--other-splits allows that, and stands in the result. "
                    f"Received: {leak}"
                )
        found.append(leak)
    return found
