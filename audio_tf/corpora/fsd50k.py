"""FSD50K in the folders of its release."""

import pathlib

from audio_tf.corpora.corpus import SPLITS, Corpus, check_splits
from audio_tf.corpora.labels import read_vocabulary, split_labels
from audio_tf.corpora.lists import audio_path, read_rows
from audio_tf.ops.checks import closest


def read_fsd50k(data_dir):
    """Reads FSD50K from its released folders (Zenodo 4060432).

    They are `FSD50K.dev_audio`, `FSD50K.eval_audio` and
    `FSD50K.ground_truth`. The release's own column of train and val splits
    dev; eval is the test split. Labels are already propagated to their
    ancestors there. A row that does not fit is an error that names it; an
    audio file that is missing or bad is left out when it is decoded.

    Args:
        data_dir: the folder that holds those three.

    Returns:
        Dict of `Corpus` by split: train, val, test.

    Raises:
        FileNotFoundError: if one of the three lists is missing.
        ValueError: if a row does not fit, or two contradict each other.
    """
    data_dir = pathlib.Path(data_dir)
    truth = data_dir / "FSD50K.ground_truth"
    vocabulary = read_vocabulary(truth / "vocabulary.csv")
    known = set(vocabulary)
    files = {split: [] for split in SPLITS}
    labels = {split: [] for split in SPLITS}
    for name, extra in (("dev", ["split"]), ("eval", [])):
        path = truth / f"{name}.csv"
        folder = data_dir / f"FSD50K.{name}_audio"
        for number, row in read_rows(path, ["fname", "labels", *extra]):
            split = row["split"] if extra else "test"
            if extra and split not in ("train", "val"):
                raise ValueError(
                    f"{path}, row {number}: split must be train or val"
                    f"{closest(split, ('train', 'val'))}. Received: {split!r}"
                )
            file = audio_path(path, number, folder, row["fname"])
            files[split].append(file.with_name(f"{file.name}.wav"))
            labels[split].append(
                split_labels(path, number, row["labels"], known)
            )
    return check_splits(
        data_dir,
        {
            split: Corpus(files[split], labels[split], vocabulary)
            for split in SPLITS
        },
    )
