"""A corpus as a folder per class, or as folders of splits with such in them."""

import pathlib

from audio_tf.audio.audio_files import audio_below
from audio_tf.corpora.arguments import check_names
from audio_tf.corpora.corpus import (
    SPLITS,
    Corpus,
    check_no_draw,
    check_splits,
    draw_splits,
)
from audio_tf.corpora.labels import check_vocabulary, compose_unicode
from audio_tf.ops.checks import closest

# What others call folders of splits, small letters or not. Taken as classes,
# the splits themselves would be told apart.
SPLITS_OF_OTHERS = {
    *("train", "training", "train_set", "training_set"),
    *("val", "valid", "validation", "dev", "val_set", "validation_set"),
    *("test", "testing", "eval", "evaluation", "test_set", "testing_set"),
}


def read_folders(data_dir, seed=None):
    """Reads a folder per class, or train, val and test folders of such.

    Audio in a place that says nothing of its class or split is an error; an
    audio file that is bad is left out when it is decoded.

    Args:
        data_dir: the folder. If `train`, `val` or `test` in it has folders
            of its own with audio, these are the splits, and must be all that
            has audio; else each folder is a class, one named `train` too,
            and 80 % of the clips become train, 10 % val and 10 % test.
        seed: int, seed of that draw, or `None` for 0.

    Returns:
        Dict of `Corpus` by split: train, val, test. A split without a folder
        has no clips.

    Raises:
        FileNotFoundError: if there is no such folder, no audio in it, or none
            in a split.
        ValueError: if audio lies in no folder of a class, some folders look
            like splits and others like classes, or all like splits of other
            names, such as `Train` and `Test`; or if a seed is given and
            there are splits.

    Examples:
        >>> import pathlib
        >>> from audio_tf import corpora
        >>> for name in ["dog/a.wav", "rain/b.wav"]:
        ...     for split in ["train", "test"]:
        ...         path = pathlib.Path("sounds", split, name)
        ...         path.parent.mkdir(parents=True)
        ...         path.touch()
        >>> corpora.read_folders("sounds")["test"].labels
        [['dog'], ['rain']]
    """
    data_dir = pathlib.Path(data_dir)
    depths = {}
    for file in audio_below(data_dir):
        folder, *rest = file.relative_to(data_dir).parts
        depths[folder] = max(len(rest), depths.get(folder, 0))
    like_splits = [split for split in SPLITS if depths.get(split, 0) > 1]
    if not like_splits:
        if depths and set(depths) <= set(SPLITS):
            raise ValueError(
                f"{data_dir}: splits need a folder per class in them. "
                f"Received: {sorted(depths)} with files alone"
            )
        check_no_splits(
            data_dir, [name for name in depths if depths[name] > 1], depths
        )
        corpus = read_class_folders(data_dir)
        return check_splits(data_dir, draw_splits(corpus, seed))
    check_no_draw(data_dir, seed)
    others = sorted(set(depths) - set(SPLITS))
    if others or "train" not in depths:
        near = closest(others[0], SPLITS) if others else ""
        raise ValueError(
            f"{data_dir}: {like_splits} look like splits, so that train must "
            f"be there and audio must be in {SPLITS} alone{near}. "
            f"Received: audio in {sorted(depths)}"
        )
    vocabulary = read_class_folders(data_dir / "train").vocabulary
    return check_splits(
        data_dir,
        {
            split: read_class_folders(data_dir / split, vocabulary)
            if split in depths or (data_dir / split).is_dir()
            else Corpus([], [], vocabulary)
            for split in SPLITS
        },
    )


def check_no_splits(where, nested, names):
    """Checks that the folders of classes are not splits of other names.

    Args:
        where: path of the corpus, for the message.
        nested: iterable of the names of the folders that have folders.
        names: iterable of the names of all folders.

    Raises:
        ValueError: if all are called as splits are, and have folders in them.
    """
    if names and all(
        name in nested and name.casefold() in SPLITS_OF_OTHERS for name in names
    ):
        raise ValueError(
            f"{where}: folders of splits must be called {', '.join(SPLITS)}, "
            "in small letters, or they would be classes. "
            f"Received: {sorted(names)}, with folders in them"
        )


def read_class_folders(data_dir, vocabulary=None):
    """Reads all audio files below the folders of `data_dir`, each a class.

    Args:
        data_dir: the folder.
        vocabulary: list of labels that the names of its folders must be
            among, or `None` for the names of those that have audio, sorted.

    Returns:
        `Corpus`.

    Raises:
        FileNotFoundError: if there is no such folder or no audio.
        ValueError: if audio lies beside the folders, or a folder is not in
            the vocabulary.
    """
    if vocabulary is not None:
        check_names(vocabulary=vocabulary)
    data_dir = pathlib.Path(data_dir)
    found = audio_below(data_dir)
    if not found:
        raise FileNotFoundError(f"{data_dir}: no audio in folders of classes")
    names = [file.relative_to(data_dir).parts for file in found]
    beside = [parts[0] for parts in names if len(parts) == 1]
    if beside:
        raise ValueError(
            f"{data_dir}: audio must be in folders of classes. "
            f"Received: {len(beside)} files beside them, the first is "
            f"{beside[0]}"
        )
    names = [compose_unicode(parts[0]) for parts in names]
    if vocabulary is None:
        vocabulary = sorted(set(names))
        check_vocabulary(data_dir, vocabulary)
    unknown = sorted(set(names) - set(vocabulary))
    if unknown:
        raise ValueError(
            f"{data_dir}: folders that the train split lacks"
            f"{closest(unknown[0], vocabulary)}. Received: {unknown}"
        )
    return Corpus(found, [[name] for name in names], vocabulary)
