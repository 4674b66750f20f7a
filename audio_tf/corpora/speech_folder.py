"""Any speech: all audio in a folder, its speakers by the folders in it."""

import pathlib

from audio_tf.audio.audio_files import audio_below
from audio_tf.corpora import phones
from audio_tf.corpora.corpus import check_no_draw, check_splits, draw_splits
from audio_tf.corpora.labels import compose_unicode
from audio_tf.corpora.speech_corpus import collect


def read_speech_folder(
    data_dir, alignment=None, lists=None, seed=None, strict=False
):
    """Reads all audio in a folder and below as utterances.

    The name of an utterance is its path within the folder, without the suffix
    and with `/` between folders; its speaker is the first folder of that
    path, and not known for files at the top. An audio file that is bad is
    left out when it is decoded.

    Args:
        data_dir: the folder.
        alignment: path of a phone file, see `read_phones`, or `None`.
        lists: dict by split of lists of utterances, see
            `SpeechCorpus.split`. If `None`, 80 % of the utterances become
            train, 10 % val and 10 % test.
        seed: int, seed of that draw, or `None` for 0.
        strict: bool. If True, whatever does not fit is an error instead of
            an entry in the report.

    Returns:
        Dict of `SpeechCorpus` by split.

    Raises:
        FileNotFoundError: if there is no such folder or no audio in it.
        ValueError: if two files are one utterance, lists contradict each
            other, or a seed is given beside them.

    Examples:
        >>> import pathlib
        >>> from audio_tf import corpora
        >>> for number in range(10):
        ...     path = pathlib.Path("speech", "anna", f"{number}.wav")
        ...     path.parent.mkdir(parents=True, exist_ok=True)
        ...     path.touch()
        >>> splits = corpora.read_speech_folder("speech")
        >>> {split: len(corpus.files) for split, corpus in splits.items()}
        {'train': 8, 'val': 1, 'test': 1}
    """
    data_dir = pathlib.Path(data_dir)
    found = []
    for file in audio_below(data_dir):
        name = file.relative_to(data_dir).with_suffix("")
        speaker = (
            compose_unicode(name.parts[0]) if len(name.parts) > 1 else None
        )
        found.append((file, compose_unicode(name.as_posix()), speaker))
    if not found:
        raise FileNotFoundError(f"{data_dir}: no audio there")
    corpus = collect(found)
    if alignment is not None:
        corpus = corpus.with_frame_labels(
            phones.read_phones(alignment), strict=strict
        )
    if lists is None:
        splits = draw_splits(corpus, seed)
    else:
        check_no_draw("What lists name", seed)
        splits = corpus.split(lists, strict)
    return check_splits(data_dir, splits)
