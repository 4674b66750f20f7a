"""Audio files into the cache, decoded in parallel through tf.data."""

import dataclasses
import os

import numpy as np
import tensorflow as tf
from tqdm.auto import tqdm

from audio_tf.audio import decode
from audio_tf.audio.decode import DECODERS
from audio_tf.data.cache import AudioCache, source_size, write_error
from audio_tf.ops.checks import check_sizes, closest
from audio_tf.terminal import printable


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
            f"`decoder` must be one of {DECODERS}{closest(decoder, DECODERS)}. "
            f"Received: decoder={decoder!r}"
        )

    def by_soundfile(path):
        path = os.fsdecode(path)
        try:
            return decode.load_audio(path, sample_rate_hz), b""
        except decode.AudioError as error:
            return np.zeros(0, "float32"), os.fsencode(error.reason)

    def load(row, path):
        if decoder == "tfio":
            from audio_tf.audio import graph_tfio

            audio, error = graph_tfio.load(path, sample_rate_hz)
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

    They stand on their own: nothing looks at the files again, which may
    change or go while a run has its clips.

    Attributes:
        corpus: `Corpus` of the usable files.
        entries: their cache entries: samples, or features of `dim`.
        lengths: their samples, or frames, int64 `(clips,)`.
        sample_rate_hz: int, the rate of the samples, also of those that
            features were computed from.
        failures: dict of the reason by path of each file left out.
        sizes: bytes of their files when they were decoded, int64 `(clips,)`.
        checksums: CRC-32 of their decoded samples, uint32 `(clips,)`.
        dim: int, features of a frame, or `None` for samples.
        frames: `Frames`, when the frames are, or `None` for samples.
    """

    corpus: object
    entries: list
    lengths: np.ndarray
    sample_rate_hz: int
    failures: dict
    sizes: np.ndarray
    checksums: np.ndarray
    dim: int | None = None
    frames: object = None

    @property
    def length_rate_hz(self):
        """How much of `lengths` is a second."""
        return self.frames.rate_hz if self.frames else self.sample_rate_hz

    def __len__(self):
        return len(self.entries)

    def select(self, rows):
        """These clips alone, the failures unchanged."""
        return dataclasses.replace(
            self,
            corpus=self.corpus.select(rows),
            entries=[self.entries[row] for row in rows],
            lengths=self.lengths[rows],
            sizes=self.sizes[rows],
            checksums=self.checksums[rows],
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

    Files that are there unchanged are not decoded again, once their entries
    are found to be whole; damaged entries are made again, with a warning. An
    interrupted run goes on where it stopped. A file that is gone is a bad
    file, whatever the cache has of it.

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
        OSError: if the cache cannot be written, a full disk included; it says
            how many files are in it and stay there.
    """
    check_sizes(sample_rate_hz=sample_rate_hz)
    cache = AudioCache(cache_dir, sample_rate_hz, decoder)
    entries, failures = {}, {}

    def fail(row, reason):
        if strict:
            raise decode.AudioError(corpus.files[row], reason)
        failures[str(corpus.files[row])] = reason

    for row, file in enumerate(corpus.files):
        try:
            entries[row] = cache.entry(file)
        except FileNotFoundError:
            fail(row, "no such file")
        except (OSError, ValueError) as error:
            fail(row, f"not a file name ({error})")
    found = cache.check_all(list(entries.values()))
    facts = dict(zip(entries, found, strict=True))
    todo = [row for row in facts if facts[row] is None]
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
            fail(row, os.fsdecode(error))
            continue
        try:
            facts[row] = cache.put(corpus.files[row], audio, entries[row])
        except OSError as error:
            kept = sum(each is not None for each in facts.values())
            raise write_error(
                error, cache.directory, kept, len(corpus)
            ) from error
    for row in todo:
        if facts[row] is None and str(corpus.files[row]) not in failures:
            fail(row, f"not decoded by {decoder}")
    rows = [row for row in facts if facts[row] is not None]
    if not rows:
        raise ValueError(
            f"None of {len(corpus)} files is usable. {describe(failures)}"
        )
    entries = [entries[row] for row in rows]
    return Clips(
        corpus.select(rows),
        entries,
        np.array([facts[row].length for row in rows], np.int64),
        sample_rate_hz,
        failures,
        np.array([source_size(entry) for entry in entries], np.int64),
        np.array([facts[row].checksum for row in rows], np.uint32),
    )


def describe(failures):
    """One text that counts the files left out and names each."""
    lines = [f"{len(failures)} files left out"]
    lines += [
        f"  {printable(path)}: {printable(reason)}"
        for path, reason in failures.items()
    ]
    return "\n".join(lines)
