"""Warnings of what a corpus that is loaded lacks, by its build and reader."""

import dataclasses
import pathlib
import warnings

from audio_tf.audio import packed
from audio_tf.corpora.speech_corpus import WITHOUT_LABELS
from audio_tf.terminal import describe_failures


def tell_of_part(root):
    """Warns if a corpus is read of a build of a part of its release.

    That is no bad file, and no error where bad ones are: of the same part as
    a folder nothing tells.

    Args:
        root: path of the folder that the reader of the layout was given.
    """
    build = packed.build_of(root)
    if build is not None and build.is_part:
        tell(
            f"{build.folder}: the build is a part of the release and has "
            f"{len(build.rows)} clips"
        )


def tell_of_left_out(root, splits, strict):
    """Tells which clips a build has left out, where no list names them.

    Of those that a list names, it is told when they are decoded.

    Args:
        root: path of the folder that the reader of the layout was given.
        splits: dict of `Corpus` by split.
        strict: bool, whether such a clip is an error; else it is a warning.

    Raises:
        ValueError: if `strict` and there is one.
    """
    build = packed.build_of(root)
    if build is None:
        return
    files = {
        pathlib.Path(file)
        for corpus in splits.values()
        for file in corpus.files
    }
    reasons = {
        name: reason
        for name, reason in build.facts["left_out"].items()
        if pathlib.Path(root, name) not in files
    }
    if not reasons:
        return
    text = (
        f"{build.folder}: {len(reasons)} clips were left out when it was "
        f"built. {describe_failures(reasons)}"
    )
    tell(text, strict)


def tell_of_report(folder, splits, strict):
    """Tells what does not fit a corpus of speech, as audio in a wrong place.

    Of utterances without labels it is told where a task asks for these.

    Args:
        folder: path of the corpus, for the message.
        splits: dict of `Corpus` by split.
        strict: bool, whether that is an error; else it is a warning.

    Raises:
        ValueError: if `strict` and there is any.
    """
    # All splits of a corpus share one report.
    corpus = next(iter(splits.values()))
    told = {k: v for k, v in corpus.report.items() if k != WITHOUT_LABELS}
    if not told:
        return
    text = (
        f"{folder}: not everything fits.\n"
        f"{dataclasses.replace(corpus, report=told).describe()}"
    )
    tell(text, strict)


def tell(text, strict=False):
    """Warns whoever has called `audio_tf.data.load`, or raises if `strict`."""
    if strict:
        raise ValueError(text)
    warnings.warn(text, RuntimeWarning, stacklevel=4)
