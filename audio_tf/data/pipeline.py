"""Audio files into the cache, decoded in parallel through tf.data."""

import dataclasses
import os

import numpy as np
import tensorflow as tf
from tqdm.auto import tqdm

from audio_tf.data import decode
from audio_tf.data.cache import AudioCache, entry_length

DECODERS = ("soundfile", "tfio")


def decode_dataset(files, sample_rate_hz, decoder="soundfile"):
    """Decodes and resamples files in parallel, in their order.

    Args:
        files: paths.
        sample_rate_hz: int, the rate wanted.
        decoder: `"soundfile"`, or `"tfio"` for tensorflow-io's ops in the
            graph (extra `tfio`).

    Returns:
        `tf.data.Dataset` of `(row, audio, error)`: the index in `files`,
        float32 `(samples,)`, and why a file has none, empty if it has. A bad
        file never stops the others: soundfile's is an element like any
        other, that of tensorflow-io is left out.
    """
    if decoder not in DECODERS:
        raise ValueError(
            f"`decoder` must be one of {DECODERS}. "
            f"Received: decoder={decoder!r}"
        )

    def by_soundfile(path):
        path = os.fsdecode(path)
        try:
            return decode.load_audio(path, sample_rate_hz), b""
        except decode.AudioError as error:
            return np.zeros(0, "float32"), error.reason.encode()

    def load(row, path):
        if decoder == "tfio":
            from audio_tf.data import tfio_decode

            audio, error = tfio_decode.load(path, sample_rate_hz)
        else:
            audio, error = tf.numpy_function(
                by_soundfile, [path], (tf.float32, tf.string), stateful=False
            )
        audio = tf.ensure_shape(audio, (None,))
        return row, audio, tf.ensure_shape(error, ())

    paths = [os.fsencode(file) for file in files]
    dataset = tf.data.Dataset.from_tensor_slices(
        (np.arange(len(paths)), tf.constant(paths, tf.string))
    )
    dataset = dataset.map(load, tf.data.AUTOTUNE)
    if decoder == "tfio":
        dataset = dataset.ignore_errors()
    return dataset.prefetch(tf.data.AUTOTUNE)


@dataclasses.dataclass(frozen=True)
class Clips:
    """The usable clips of a corpus, decoded in the cache.

    Attributes:
        corpus: `Corpus` of the usable files.
        entries: their cache entries.
        lengths: their samples, int64 `(clips,)`.
        sample_rate_hz: int, the rate of the samples.
        failures: dict of the reason by path of each file left out.
    """

    corpus: object
    entries: list
    lengths: np.ndarray
    sample_rate_hz: int
    failures: dict

    def __len__(self):
        return len(self.entries)

    def select(self, rows):
        """These clips alone, the failures unchanged."""
        return dataclasses.replace(
            self,
            corpus=self.corpus.select(rows),
            entries=[self.entries[row] for row in rows],
            lengths=self.lengths[rows],
        )


def prepare(
    corpus,
    sample_rate_hz,
    cache_dir,
    decoder="soundfile",
    strict=False,
    progress=True,
    name="",
):
    """Brings every file of a corpus into the cache and names the bad ones.

    Files that are there unchanged are not decoded again. An interrupted run
    goes on where it stopped.

    Args:
        corpus: `Corpus`.
        sample_rate_hz: int, the rate wanted.
        cache_dir: folder of the `AudioCache`.
        decoder: as `decode_dataset` takes it.
        strict: bool. If True, the first bad file is an error.
        progress: bool, whether to show a progress bar.
        name: str, what to call the corpus in the progress bar.

    Returns:
        `Clips`.

    Raises:
        AudioError: if `strict`, at the first bad file.
        ValueError: if no file is usable.
    """
    cache = AudioCache(cache_dir, sample_rate_hz, decoder)
    entries, wanted, failures = {}, {}, {}

    def fail(row, reason):
        if strict:
            raise decode.AudioError(corpus.files[row], reason)
        failures[str(corpus.files[row])] = reason

    for row, file in enumerate(corpus.files):
        try:
            entry = cache.entry(file)
        except FileNotFoundError:
            fail(row, "no such file")
            continue
        except (OSError, ValueError) as error:
            fail(row, f"not a file name ({error})")
            continue
        if entry.is_file():
            entries[row] = entry
        else:
            wanted[row] = entry
    todo = list(wanted)
    decoded = decode_dataset(
        [corpus.files[row] for row in todo], sample_rate_hz, decoder
    )
    for index, audio, error in tqdm(
        decoded.as_numpy_iterator(),
        desc=f"decoding {name}".strip(),
        total=len(todo),
        unit="file",
        disable=None if progress and todo else True,
    ):
        row = todo[index]
        if error:
            fail(row, error.decode())
        else:
            entries[row] = cache.put(corpus.files[row], audio, wanted[row])
    for row in todo:
        if row not in entries and str(corpus.files[row]) not in failures:
            fail(row, f"not decoded by {decoder}")
    if not entries:
        raise ValueError(
            f"None of {len(corpus)} files is usable. {describe(failures)}"
        )
    rows = sorted(entries)
    entries = [entries[row] for row in rows]
    lengths = np.array([entry_length(entry) for entry in entries], np.int64)
    return Clips(
        corpus.select(rows), entries, lengths, sample_rate_hz, failures
    )


def describe(failures):
    """One text that counts the files left out and names each."""
    lines = [f"{len(failures)} files left out"]
    lines += [f"  {path}: {reason}" for path, reason in failures.items()]
    return "\n".join(lines)
