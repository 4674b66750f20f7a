"""LibriSpeech that TFDS has prepared, back to files."""

import os
import pathlib

import soundfile
from tqdm.auto import tqdm

# TFDS' names of the splits are the subsets' but for hyphens.
TFDS_SPLITS = {
    "train-clean-100": "train_clean100",
    "train-clean-360": "train_clean360",
    "train-other-500": "train_other500",
    "dev-clean": "dev_clean",
    "dev-other": "dev_other",
    "test-clean": "test_clean",
    "test-other": "test_other",
}


def export_librispeech(data_dir, out_dir, subsets=None, progress=True):
    """Writes utterances that TFDS has prepared in LibriSpeech's own layout.

    One utterance at a time, as FLAC, which loses nothing; what is there
    already is left alone, so that an interrupted run goes on. It reads the
    records by their description and never runs TFDS' builder, which needs
    Apache Beam, ffmpeg and tens of gigabytes of memory: if TFDS has not
    prepared them yet, read the archives' folders with `read_librispeech`.
    `SPEAKERS.TXT` is not among what TFDS keeps.

    Args:
        data_dir: TFDS' own folder, the one that holds `librispeech`.
        out_dir: folder, made if missing, for a folder `LibriSpeech`.
        subsets: names as the release has them, such as `"dev-clean"`; all
            that are prepared if `None`.
        progress: bool, whether to show a progress bar.

    Returns:
        The subsets, a list.

    Raises:
        ImportError: if tensorflow-datasets is not installed.
        FileNotFoundError: if there is no prepared LibriSpeech.
        ValueError: if a subset is not prepared, or the audio is not int16 at
            16 kHz.
    """
    folder = prepared_folder(data_dir)
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


def prepared_folder(data_dir):
    """The newest version of LibriSpeech in TFDS' folder."""
    found = pathlib.Path(data_dir).glob("librispeech/**/dataset_info.json")
    folders = [path.parent for path in found]
    if not folders:
        raise FileNotFoundError(
            f"{data_dir}: TFDS has not prepared LibriSpeech there. Unpack the "
            "archives and read their folders with `read_librispeech`"
        )
    return max(folders, key=lambda folder: version(folder.name))


def version(name):
    """`"2.1.10"` as numbers, to compare."""
    parts = name.split(".")
    return tuple(int(part) if part.isdecimal() else -1 for part in parts)


def write_utterance(folder, example, rate_hz):
    """Writes the samples, or the FLAC bytes, of one example of TFDS."""
    name = example["id"].decode()
    speaker, chapter, _ = name.split("-")
    path = folder / speaker / chapter / f"{name}.flac"
    if path.is_file():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    speech = example["speech"]
    try:
        if isinstance(speech, bytes):
            partial.write_bytes(speech)
        elif speech.dtype != "int16":
            raise ValueError(
                f"{name}: samples must be int16. Received: {speech.dtype}"
            )
        else:
            soundfile.write(partial, speech, rate_hz, "PCM_16", format="FLAC")
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
