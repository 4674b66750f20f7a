"""Audio beside a corpus, which has no labels: it is listed, and told apart."""

import os

from audio_tf.audio.audio_files import list_files
from audio_tf.corpora import Corpus
from audio_tf.runs import corpus_records

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
        if corpus_records.size_of(file) == corpus_records.MISSING:
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
