"""LibriSpeech that TFDS has prepared, read by way of files."""

import hashlib
import pathlib

from audio_tf import files
from audio_tf.corpora.arguments import check_names
from audio_tf.corpora.librispeech import read_librispeech, subsets_by_split

# TFDS' name of the split by the name of the release's subset.
TFDS_SPLITS = {
    "train-clean-100": "train_clean100",
    "train-clean-360": "train_clean360",
    "train-other-500": "train_other500",
    "dev-clean": "dev_clean",
    "dev-other": "dev_other",
    "test-clean": "test_clean",
    "test-other": "test_other",
}


def read_tfds_librispeech(
    data_dir, out_dir, subsets=None, alignment=None, lists=None, strict=False
):
    """Reads LibriSpeech that TFDS has prepared, by way of files.

    ```python
    splits = read_tfds_librispeech(
        "tensorflow_datasets", "LibriSpeech", subsets=["dev-clean"]
    )
    ```

    `export_librispeech` writes the utterances, `read_librispeech` reads them.

    Args:
        data_dir: TFDS' own folder, the one that holds `librispeech`.
        out_dir: folder that the utterances are written to as FLAC.
        subsets: list of subsets, or dict by split of such lists, see
            `read_librispeech`; `None` for all that are prepared.
        alignment: path of a phone file, or `None`.
        lists: dict by split of lists of utterances, or `None`.
        strict: bool. If True, whatever does not fit is an error instead of
            an entry in the report.

    Returns:
        Dict of `SpeechCorpus` by split.
    """
    named = None
    if subsets is not None:
        splits = subsets_by_split(subsets)
        named = [each for group in splits.values() for each in group]
    written = export_librispeech(data_dir, out_dir, named)
    return read_librispeech(
        out_dir,
        written if subsets is None else subsets,
        alignment,
        lists,
        strict,
    )


def export_librispeech(data_dir, out_dir, subsets=None, progress=True):
    """Writes what TFDS has prepared as files in LibriSpeech's own layout.

    It writes one utterance at a time, 16-bit FLAC at 16 kHz, which loses
    nothing; a file that is there already is left alone, so that an
    interrupted run goes on. It reads TFDS' records by their description and
    never runs TFDS' builder, which needs Apache Beam, ffmpeg and tens of
    gigabytes of memory: if TFDS has not prepared them yet, unpack the
    archives and use `read_librispeech`. TFDS does not keep `SPEAKERS.TXT`.

    Args:
        data_dir: TFDS' own folder, the one that holds `librispeech`.
        out_dir: folder, made if missing, for a folder `LibriSpeech`.
        subsets: list of names as the release has them, such as
            `"dev-clean"`; `None` for all that are prepared.
        progress: bool, whether to show a progress bar.

    Returns:
        List of the subsets that were written.

    Raises:
        ImportError: if tensorflow-datasets is not installed.
        FileNotFoundError: if there is no prepared LibriSpeech.
        ValueError: if a subset is not prepared, or the audio is not int16 at
            16 kHz.
    """
    folder = prepared_folder(data_dir)
    from tqdm.auto import tqdm

    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise ImportError(
            "This needs TFDS: pip install tensorflow-datasets"
        ) from error
    builder = tfds.builder_from_directory(folder)
    there = [
        name for name, key in TFDS_SPLITS.items() if key in builder.info.splits
    ]
    if subsets is not None:
        check_names(subsets=subsets)
    subsets = there if subsets is None else list(subsets)
    if not subsets or not set(subsets) <= set(there):
        raise ValueError(
            f"{folder}: subsets must be of {there}. Received: {subsets}"
        )
    rate_hz = builder.info.features["speech"].sample_rate
    if rate_hz != 16_000:
        raise ValueError(f"{folder}: must be at 16 kHz. Received: {rate_hz}")
    root = pathlib.Path(out_dir) / "LibriSpeech"
    for subset in subsets:
        split = TFDS_SPLITS[subset]
        # Undecoded: the lazily decoded kind would ask for tensorflow-io.
        dataset = builder.as_dataset(
            split=split, decoders={"speech": tfds.decode.SkipDecoding()}
        )
        for example in tqdm(
            dataset.as_numpy_iterator(),
            desc=f"writing {subset}",
            total=builder.info.splits[split].num_examples,
            unit="file",
            disable=None if progress else True,
        ):
            write_utterance(root / subset, example, rate_hz)
    return subsets


def export_dir(data_dir, cache_dir):
    """Returns where in a cache a prepared LibriSpeech is written as files.

    Args:
        data_dir: TFDS' own folder, the one that holds `librispeech`.
        cache_dir: folder of the cache.

    Returns:
        `pathlib.Path`, another one for what has other records.

    Raises:
        FileNotFoundError: if there is no prepared LibriSpeech.
    """
    # It has the version, and the sizes and counts of each split.
    about = (prepared_folder(data_dir) / "dataset_info.json").read_bytes()
    mark = hashlib.sha256(about).hexdigest()[:16]
    return pathlib.Path(cache_dir, f"librispeech-{mark}")


def prepared_folder(data_dir):
    """Returns the folder of the newest LibriSpeech that TFDS has prepared."""
    found = pathlib.Path(data_dir).glob("librispeech/**/dataset_info.json")
    folders = [path.parent for path in found]
    if not folders:
        raise FileNotFoundError(
            f"{data_dir}: TFDS has not prepared LibriSpeech there. Unpack the "
            "archives and read their folders with `read_librispeech`"
        )
    return max(folders, key=lambda folder: version(folder.name))


def version(name):
    """Turns `"2.1.10"` into numbers, so that versions can be compared."""
    parts = name.split(".")
    return tuple(int(part) if part.isdecimal() else -1 for part in parts)


def write_utterance(folder, example, rate_hz):
    """Writes one example of TFDS as a file, unless it is there already.

    Args:
        folder: `pathlib.Path` of the subset.
        example: dict with `id`, bytes, and `speech`: int16 samples
            `(samples,)`, or the bytes of a FLAC file.
        rate_hz: int, rate of the samples.

    Raises:
        ValueError: if the samples are not int16.
    """
    name = example["id"].decode()
    speaker, chapter, _ = name.split("-")
    path = folder / speaker / chapter / f"{name}.flac"
    if path.is_file():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    speech = example["speech"]
    # Each host of a training writes what is missing, into one cache perhaps.
    with files.whole_file(path, shared=True) as new:
        if isinstance(speech, bytes):
            new.write_bytes(speech)
        elif speech.dtype != "int16":
            raise ValueError(
                f"{name}: samples must be int16. Received: {speech.dtype}"
            )
        else:
            import soundfile

            soundfile.write(new, speech, rate_hz, "PCM_16", format="FLAC")
