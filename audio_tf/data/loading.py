"""One door to a corpus: its release's folder, or what was built for TFDS."""

import dataclasses
import os
import pathlib
import typing
import warnings

import numpy as np
import tensorflow as tf

from audio_tf.audio import packed
from audio_tf.audio.audio_files import is_folder
from audio_tf.audio.decode import AudioError, read_audio
from audio_tf.corpora import CORPORA, SPEECH, layouts, tfds_librispeech
from audio_tf.corpora.lists import is_there
from audio_tf.data.cache import default_cache_dir
from audio_tf.data.clips import prepare
from audio_tf.data.left_out import (
    tell_of_left_out,
    tell_of_part,
    tell_of_report,
)
from audio_tf.ops.checks import check_choice, check_sizes, closest
from audio_tf.terminal import describe_failures, first_names


@dataclasses.dataclass(frozen=True)
class Task:
    """The corpora and the targets that belong to a task.

    Attributes:
        layouts: dict of the layouts of corpora that answer it.
        targets: function of a corpus to the list of its clips' targets, or
            `None` where clips have none.
        dtype: type of the targets.
        shape: function of a corpus to the shape of one clip's targets.
        lists: dict by option of the layout's reader of the name of a file in
            the corpus' folder, which is taken where the option is not given.
    """

    layouts: dict
    targets: typing.Callable | None
    dtype: object = tf.float32
    shape: typing.Callable | None = None
    lists: dict = dataclasses.field(default_factory=dict)


TASKS = {
    "labels": Task(
        CORPORA,
        lambda corpus: corpus.targets(),
        tf.float32,
        lambda corpus: (len(corpus.vocabulary),),
    ),
    "speaker": Task(
        SPEECH, lambda corpus: corpus.speakers, tf.int32, lambda _: ()
    ),
    "phones": Task(
        SPEECH,
        lambda corpus: corpus.frame_labels,
        tf.int32,
        lambda _: (None,),
        {"alignment": "converted_aligned_phones.txt"},
    ),
    "audio": Task({**SPEECH, **CORPORA}, None),
}


def load(
    name_or_folder,
    split="train",
    task="labels",
    data_dir=None,
    sample_rate_hz=None,
    cache_dir=None,
    strict=False,
    progress=True,
    with_info=False,
    dataset=None,
    **options,
):
    """Loads a split of a corpus as clips with what they are labelled with.

    ```python
    clips, info = audio_tf.data.load("ESC-50-master", with_info=True)
    for waveform, targets in clips:
        print(waveform.shape, info.corpus.vocabulary[targets.numpy().argmax()])
    ```

    The elements are the same whether the folder is the release itself or what
    `audio-tf build` made of it. Clips are decoded once, into the cache. Of a
    build that is a part of the release, by `--partial`, there is a warning.

    Args:
        name_or_folder: path of a folder in the layout of its release, or of a
            build, whose layout is told by what is in it, or of a CSV file of
            the layout `"csv"`; or the name of a layout, a key of `CORPORA` or
            `SPEECH`, of which there is a build in TFDS' folder or in
            `data_dir`. `"synthetic"` is made in the cache, where what
            `"tfds_librispeech"` names is written as files, too.
        split: str, a split of the layout's reader, such as `"train"`.
        task: str, a key of `TASKS`. `"labels"`: all labels of the clip, float32
            `(classes,)`, 1 or 0. `"speaker"`: the speaker's index, int32.
            `"phones"`: the phone of each frame, int32 `(labels,)`, at
            `info.corpus.label_rate_hz`; LibriSpeech has them if CPC's
            `converted_aligned_phones.txt` is in its folder. `"audio"`: no
            targets, so that an element is the waveform alone. Clips that lack
            what the task asks for are left out, and a warning counts them.
        data_dir: folder of the corpus whose layout `name_or_folder` names; if
            `None`, TFDS' own: `$TFDS_DATA_DIR`, or `~/tensorflow_datasets`.
        sample_rate_hz: int, the rate of the waveforms, or `None` for the rate
            of the corpus' first clip, the same for all its splits.
        cache_dir: folder of the `AudioCache`, or `None` for the default.
        strict: bool. If True, a bad file, a clip that lacks what the task
            asks for or audio that the reader leaves out, as of an utterance
            in no split, is an error; else it is left out, and a warning
            counts such files, those too that a build was made without.
        progress: bool, whether to show a progress bar.
        with_info: bool, whether to return the `Clips` too.
        dataset: str, the name of the layout of the folder or file
            `name_or_folder`, or `None` to tell it by what is in it. The
            layouts `"folders"`, `"folder"` and `"tfds_librispeech"` have no
            marks, and must be named.
        **options: further arguments of the layout's reader, see
            `corpora.load_corpus`.

    Returns:
        `tf.data.Dataset` of `(waveform, targets)`, in the corpus' order, with
        float32 waveforms `(samples,)`, mono, full scale 1; or a pair of it and
        the `Clips`, whose `corpus` has files, labels and vocabulary.

    Raises:
        FileNotFoundError: if there is no such folder, or no build of a name.
        ValueError: if there is no such task or split, the folder has no known
            layout or one of other tasks, an option is not as its reader takes
            it, or all clips lack what the task asks for.
    """
    check_choice("task", task, TASKS)
    chosen = TASKS[task]
    if sample_rate_hz is not None:
        check_sizes(sample_rate_hz=sample_rate_hz)
    cache_dir = cache_dir or default_cache_dir()
    dataset, folder = locate(name_or_folder, data_dir, chosen.layouts, dataset)
    if folder is None:
        seed = options.setdefault("seed", 0)
        folder = made_dir(dataset, seed, cache_dir)
    root = layouts.resolve(chosen.layouts, dataset, folder)
    takes = chosen.layouts[dataset].takes
    if "out_dir" in takes:
        # Where a training has it, too.
        options.setdefault(
            "out_dir", tfds_librispeech.export_dir(root, cache_dir)
        )
    for option, name in chosen.lists.items():
        file = pathlib.Path(root) / name
        if option in takes and is_there(file):
            options.setdefault(option, file)
    splits = layouts.load(chosen.layouts, dataset, root, options)
    check_choice("split", split, splits)
    tell_of_part(root)
    tell_of_left_out(root, splits, strict)
    tell_of_report(folder, splits, strict)
    corpus = splits[split]
    if not len(corpus):
        filled = [each for each in splits if len(splits[each])]
        raise ValueError(
            f"{folder}: the split {split} has no clips; {filled} have"
        )
    lacking = find_lacking(corpus, chosen)
    if lacking:
        names = first_names(corpus.files[row] for row in lacking)
        text = (
            f"{folder}: {len(lacking)} of {len(corpus)} clips of {split} lack "
            f"what task={task!r} asks for"
        )
        if strict or len(lacking) == len(corpus):
            raise ValueError(f"{text}. Received: {names}")
        warnings.warn(
            f"{text}, and are left out: {names}", RuntimeWarning, stacklevel=2
        )
        left_out = set(lacking)
        corpus = corpus.select(
            [row for row in range(len(corpus)) if row not in left_out]
        )
    clips = prepare(
        corpus,
        first_rate(splits) if sample_rate_hz is None else sample_rate_hz,
        cache_dir,
        strict=strict,
        progress=progress,
        name=split,
    )
    if clips.failures:
        warnings.warn(
            f"{folder}: {len(clips.failures)} of {len(corpus)} clips are left "
            f"out. {describe_failures(clips.failures)}",
            RuntimeWarning,
            stacklevel=2,
        )
    elements = as_dataset(clips, chosen)
    return (elements, clips) if with_info else elements


def locate(name_or_folder, data_dir, known, dataset=None):
    """Finds the folder of a corpus and its layout.

    Args:
        name_or_folder: see `load`.
        data_dir: see `load`.
        known: dict of `Layout` by name.
        dataset: see `load`.

    Returns:
        Pair of the name of the layout and the path of the folder, which is
        `None` for a corpus that is made in the cache.
    """
    if dataset is not None:
        # What has no hash, as a list, may be asked for.
        if dataset not in list(known):
            raise ValueError(
                f"`dataset` must be one of {list(known)}"
                f"{closest(dataset, known)}{tasks_of(dataset)}. "
                f"Received: dataset={dataset!r}"
            )
        if data_dir is not None:
            raise ValueError(
                "`dataset` must be given with a folder, and `data_dir` with "
                "the name of a layout, not both. Received: "
                f"dataset={dataset!r}, data_dir={os.fspath(data_dir)!r}"
            )
        if not os.path.exists(name_or_folder) and not is_folder(name_or_folder):
            raise FileNotFoundError(f"{name_or_folder}: no such file or folder")
        return dataset, name_or_folder
    if data_dir is None and os.path.isdir(name_or_folder):
        found = layouts.detect(
            {**known, **TASKS["audio"].layouts}, name_or_folder
        )
        if found not in known:
            raise ValueError(
                f"{name_or_folder}: the task needs a corpus of {list(known)}"
                f"{tasks_of(found)}"
            )
        return found, name_or_folder
    if data_dir is None and os.path.isfile(name_or_folder):
        if "csv" in known and str(name_or_folder).lower().endswith(".csv"):
            return "csv", name_or_folder
        raise ValueError(
            "`name_or_folder` must be a folder, the name of a layout or, for "
            "labels, a file .csv; `dataset` names the layout of another file, "
            f"one of {list(known)}. Received: {name_or_folder}"
        )
    if name_or_folder not in known:
        # One that is there comes as far as this with `data_dir` alone.
        if os.path.exists(name_or_folder):
            raise ValueError(
                "`data_dir` must be given with the name of a layout, one of "
                f"{list(known)}; a folder or a file needs none. Received: "
                f"{name_or_folder}, data_dir={os.fspath(data_dir)!r}"
            )
        raise FileNotFoundError(
            f"{name_or_folder}: no such folder, and no layout of "
            f"{list(known)}{closest(name_or_folder, known)}"
            f"{tasks_of(name_or_folder)}"
        )
    if data_dir is not None or known[name_or_folder].makes_its_own:
        return name_or_folder, data_dir
    root = pathlib.Path(
        os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    ).expanduser()
    if packed.find_build(root, name_or_folder) is None:
        raise FileNotFoundError(
            f"{root}: nothing is built there that the layout "
            f"{name_or_folder!r} reads; `audio-tf build` does, or `data_dir` "
            "names the folder of the release"
        )
    return name_or_folder, root


def tasks_of(dataset):
    """Returns which tasks a layout is for, a text, empty if there is none.

    Args:
        dataset: what should be the name of a layout.
    """
    tasks = [name for name in TASKS if dataset in list(TASKS[name].layouts)]
    return f"; the layout {dataset!r} is for task={tasks}" if tasks else ""


def made_dir(dataset, seed, cache_dir):
    """Returns the path where a layout that makes its own corpus has it.

    Args:
        dataset: str, the name of the layout.
        seed: int, seed of the corpus.
        cache_dir: folder of the cache.
    """
    return pathlib.Path(cache_dir, f"{dataset}-{seed}")


def find_lacking(corpus, chosen):
    """Lists the clips of a corpus that lack what a task asks for.

    Args:
        corpus: `Corpus`.
        chosen: `Task`.

    Returns:
        List of int, their rows.
    """
    if chosen.targets is None:
        return []
    found = chosen.targets(corpus)
    return [
        row
        for row in range(len(corpus))
        if found is None or found[row] is None or np.min(found[row]) < 0
    ]


def first_rate(splits):
    """Returns the rate of the first clip that can be read, in Hz.

    It is that of the corpus and not of a split: what is trained at one rate
    and tested at another one has no figure.

    Args:
        splits: dict of `Corpus` by split.

    Raises:
        ValueError: if there is no such clip.
    """
    reasons = {}
    for corpus in splits.values():
        for file in corpus.files:
            try:
                return read_audio(file)[1]
            except AudioError as error:
                reasons[str(file)] = error.reason
    raise ValueError(
        f"None of {len(reasons)} files is usable. {describe_failures(reasons)}"
    )


def as_dataset(clips, chosen):
    """Returns the elements of `load` of the clips of a corpus."""

    def read(row):
        waveform = tf.numpy_function(clips.read, [row], tf.float32)
        return tf.ensure_shape(waveform, (None,))

    waveforms = tf.data.Dataset.range(len(clips)).map(read, tf.data.AUTOTUNE)
    if chosen.targets is None:
        return waveforms.prefetch(tf.data.AUTOTUNE)
    found = chosen.targets(clips.corpus)

    def target(row):
        value = tf.numpy_function(
            lambda row: np.asarray(found[row], chosen.dtype.as_numpy_dtype),
            [row],
            chosen.dtype,
        )
        return tf.ensure_shape(value, chosen.shape(clips.corpus))

    targets = tf.data.Dataset.range(len(clips)).map(target, tf.data.AUTOTUNE)
    return tf.data.Dataset.zip(waveforms, targets).prefetch(tf.data.AUTOTUNE)
