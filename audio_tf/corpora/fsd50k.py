"""FSD50K in the folders of its release."""

import json
import pathlib

from audio_tf.audio import packed
from audio_tf.corpora.corpus import SPLITS, Corpus, check_splits
from audio_tf.corpora.labels import read_vocabulary, split_labels
from audio_tf.corpora.lists import audio_path, is_there, read_rows
from audio_tf.ops.checks import closest

CLIPS_INFO = {
    name: f"FSD50K.metadata/{name}_clips_info_FSD50K.json"
    for name in ("dev", "eval")
}


def read_fsd50k(data_dir):
    """Reads FSD50K from its released folders (Zenodo 4060432).

    ```python
    splits = read_fsd50k("FSD50K")
    splits["train"].labels[0]
    ```

    They are `FSD50K.dev_audio`, `FSD50K.eval_audio` and
    `FSD50K.ground_truth`. The release's own column of train and val splits
    dev; eval is the test split. Labels are already propagated to their
    ancestors there. A row that does not fit is an error that names it; an
    audio file that is missing or bad is left out when it is decoded. With
    `FSD50K.metadata` beside, the sources are those who uploaded the clips, and
    the licence of each clip is known.

    Args:
        data_dir: the folder that holds those three.

    Returns:
        Dict of `Corpus` by split: train, val, test.

    Raises:
        FileNotFoundError: if one of the three lists is missing.
        ValueError: if a row or the metadata do not fit, two rows contradict
            each other, or a clip is in both dev and eval.
    """
    data_dir = pathlib.Path(data_dir)
    truth = data_dir / "FSD50K.ground_truth"
    vocabulary = read_vocabulary(truth / "vocabulary.csv")
    known = set(vocabulary)
    info = {}
    for path in CLIPS_INFO.values():
        info |= read_clips_info(data_dir / path)
    files = {split: [] for split in SPLITS}
    labels = {split: [] for split in SPLITS}
    owner = {}
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
            # A clip has one number in Freesound, whichever folder it is in.
            where = owner.setdefault(file.name, (path, number))
            if where[0] != path:
                raise ValueError(
                    f"{path}, row {number}: a clip must be in one of dev and "
                    f"eval. Received: {file.name!r}, which {where[0]}, row "
                    f"{where[1]}, has too"
                )
            files[split].append(file.with_name(f"{file.name}.wav"))
            labels[split].append(
                split_labels(path, number, row["labels"], known)
            )
    return check_splits(
        data_dir,
        {
            split: Corpus(
                files[split],
                labels[split],
                vocabulary,
                **facts_of(info, files[split]),
            )
            for split in SPLITS
        },
    )


def facts_of(info, files):
    """Returns arguments of `Corpus` on who uploaded clips, and for what use.

    Args:
        info: dict by clip, as `read_clips_info` returns it.
        files: list of `pathlib.Path` of the clips.

    Returns:
        Dict; empty where nothing is known of any clip.
    """
    if not info:
        return {}
    found = [info.get(file.stem, {}) for file in files]
    return {
        "sources": [each.get("uploader") for each in found],
        "source_kind": "uploader",
        "licences": [each.get("licence") for each in found],
    }


def read_clips_info(path):
    """Reads who uploaded each clip to Freesound, and under which licence.

    Args:
        path: the file of the release's metadata, which may be missing.

    Returns:
        Dict by clip of a dict of `uploader` and `licence`.

    Raises:
        ValueError: if it is not as released.
    """
    if not is_there(path):
        return {}
    try:
        clips = json.loads(packed.read_bytes(path))
        return {
            clip: {"uploader": each["uploader"], "licence": each["license"]}
            for clip, each in clips.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}: must be a dict by clip, with uploader and license "
            f"({type(error).__name__}: {error})"
        ) from error
