"""Arabic Speech Commands in the folders of its release."""

import pathlib

from audio_tf.corpora.corpus import SPLITS, Corpus, check_splits
from audio_tf.corpora.lists import audio_path, is_there, read_rows
from audio_tf.ops.checks import closest


def read_arabic_speech_commands(data_dir):
    """Reads Arabic Speech Commands (Zenodo 4662481) from its released folders.

    ```python
    splits = read_arabic_speech_commands("arabic-speech-commands")
    splits["test"].files
    ```

    They are `train.csv`, `val.csv`, `test.csv` with the columns `file` and
    `class`, and the clips `dataset/{word}/{speaker}_NO_{round}.wav` of any
    suffix that the lists name. The lists are the official splits, and no
    speaker is in two of them. A row that does not fit is an error that names
    it; an audio file that is missing or bad is left out when it is decoded.

    Args:
        data_dir: the folder that holds `dataset/` and the lists.

    Returns:
        Dict of `Corpus` by split: train, val, test. Without `test.csv` the
        split test has no clips. The vocabulary is the words of `train.csv`,
        sorted; the sources are the speakers.

    Raises:
        FileNotFoundError: if `train.csv` or `val.csv` is missing.
        ValueError: if a file is not in the folder of its word, a word is not
            in `train.csv`, or two rows contradict each other; see
            `check_splits`.
    """
    data_dir = pathlib.Path(data_dir)
    rows = {}
    for split in SPLITS:
        path = data_dir / f"{split}.csv"
        optional = split == "test" and not is_there(path)
        rows[split] = [] if optional else read_rows(path, ["file", "class"])
    words = sorted({row["class"] for _, row in rows["train"]})
    corpora = {}
    for split in SPLITS:
        path = data_dir / f"{split}.csv"
        files, labels = [], []
        for number, row in rows[split]:
            file, word = row["file"], row["class"]
            if word not in words:
                raise ValueError(
                    f"{path}, row {number}: not one of the {len(words)} words "
                    f"of train.csv{closest(word, words)}. Received: {word!r}"
                )
            files.append(audio_path(path, number, data_dir, file))
            parts = pathlib.PurePosixPath(file).parts
            if len(parts) != 3 or parts[:2] != ("dataset", word):
                raise ValueError(
                    f"{path}, row {number}: a clip of {word!r} must be in "
                    f"dataset/{word}. Received: {file!r}"
                )
            labels.append([word])
        corpora[split] = Corpus(
            files,
            labels,
            words,
            sources=[file.stem.partition("_NO_")[0] for file in files],
            source_kind="speaker",
        )
    return check_splits(data_dir, corpora)
