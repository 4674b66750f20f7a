"""The clips of a corpus: decoded into the cache, bad files named."""

import dataclasses

import numpy as np
from tqdm.auto import tqdm

from audio_tf.audio.decode import AudioError
from audio_tf.audio.packed import PackError
from audio_tf.data import shards
from audio_tf.data.cache import (
    HEADER_SIZE,
    AudioCache,
    read_bytes_into,
    source_size,
    write_error,
)
from audio_tf.data.decoding import decode_files
from audio_tf.ops.checks import check_sizes
from audio_tf.terminal import describe_failures


@dataclasses.dataclass(frozen=True)
class Clips:
    """The usable clips of a corpus, decoded in the cache.

    A clip is in an entry of its own, or in a shard that `audio-tf prepare` has
    written. Nothing looks at the audio files again: they may change or go
    while a run has its clips.

    Attributes:
        corpus: `Corpus` of the clips that could be decoded.
        entries: list of the paths of the clips' cache entries, which hold
            samples or, after `cache_features`, features; there is no such
            file of a clip in a shard.
        lengths: int64 `(clips,)`, samples of each clip, or frames of its
            features.
        sample_rate_hz: int, the rate of the samples, or of the samples that
            features were computed from.
        failures: dict by path, a str, of the reason why an audio file was
            left out.
        sizes: int64 `(clips,)`, bytes of each audio file when it was decoded.
        checksums: uint32 `(clips,)`, CRC-32 of each clip's decoded samples.
        dim: int, features of a frame, or `None` for samples.
        frames: `Frames` that says when the frames of features are, or `None`
            for samples.
        in_shards: dict by entry of the `shards.Found` of those clips that are
            in shards.

    Examples:
        >>> import soundfile
        >>> from audio_tf import corpora, data
        >>> soundfile.write("a.wav", [0.5] * 8_000, 8_000)
        >>> corpus = corpora.Corpus(["a.wav"], [["dog"]], ["dog"])
        >>> clips = data.prepare(corpus, 16_000, "cache", progress=False)
        >>> clips.lengths.tolist(), clips.read(0).shape
        ([16000], (16000,))
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
    in_shards: dict = dataclasses.field(default_factory=dict)

    @property
    def length_rate_hz(self):
        """Returns how many samples, or frames of features, a second has."""
        return self.frames.rate_hz if self.frames else self.sample_rate_hz

    @property
    def marks(self):
        """Marks that tell clips apart without their samples, uint64 `(clips,)`.

        Clips of the same samples have the same mark, of length and checksum;
        others have it once in billions.
        """
        checksums = np.asarray(self.checksums, "uint64")
        return np.asarray(self.lengths, "uint64") << 32 | checksums

    def __len__(self):
        return len(self.entries)

    def read(self, row, start=0, count=-1):
        """Reads values of a clip: samples, or features one after the other.

        Args:
            row: int, the clip.
            start: int, the first value.
            count: int, how many; all from `start` on if -1.

        Returns:
            Float32 array `(count,)`.
        """
        if count == -1:
            whole = int(self.lengths[row]) * (self.dim or 1)
            count = max(whole - start, 0)
        out = np.empty(count, "<f4")
        self.read_into(row, start, out)
        return out

    def read_into(self, row, start, out):
        """Reads as many values of a clip as an array has.

        Args:
            row: int, the clip.
            start: int, the first value.
            out: contiguous float32 array `(count,)`.

        Raises:
            OSError: if there are not as many.
        """
        entry = self.entries[row]
        found = self.in_shards.get(entry)
        path, place = found.place if found else (entry, HEADER_SIZE)
        read_bytes_into(path, place + 4 * start, out)

    def check_teaches(self):
        """Checks that something can be learned from what could be decoded.

        Raises:
            ValueError: as `Corpus.check_teaches`; it names what was left out.
        """
        try:
            self.corpus.check_teaches()
        except ValueError as error:
            if not self.failures:
                raise
            told = describe_failures(self.failures)
            raise ValueError(f"{error}. {told}") from None

    def select(self, rows):
        """Returns these clips alone, the failures unchanged.

        Args:
            rows: int array or list, the indices of the clips.
        """
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
    """Decodes every clip of a corpus into the cache and names the bad files.

    A bad file, or one that is gone, is left out with its labels and named in
    `Clips.failures`, or is an error if `strict`. A file whose entry is there
    and whole, or which is in a shard of `audio-tf prepare`, is not decoded
    again; a damaged entry is made again, with a warning. An interrupted run
    goes on where it stopped.

    Args:
        corpus: `Corpus`.
        sample_rate_hz: int, the rate wanted.
        cache_dir: folder of the `AudioCache`.
        decoder: str, a key of `DECODERS`.
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

    Examples:
        >>> import soundfile
        >>> from audio_tf import corpora, data
        >>> soundfile.write("a.wav", [0.5] * 8_000, 8_000)
        >>> files, labels = ["a.wav", "gone.wav"], [["dog"], ["rain"]]
        >>> corpus = corpora.Corpus(files, labels, ["dog", "rain"])
        >>> clips = data.prepare(corpus, 16_000, "cache", progress=False)
        >>> clips.lengths.tolist(), list(clips.failures)
        ([16000], ['gone.wav'])
    """
    check_sizes(sample_rate_hz=sample_rate_hz)
    cache = AudioCache(cache_dir, sample_rate_hz, decoder)
    failures = Failures(corpus, strict)
    entries = find_entries(corpus, cache, failures)
    facts, in_shards = known_facts(corpus, cache, entries)
    todo = [row for row in facts if facts[row] is None]
    shown = tqdm(
        decode_files(
            [corpus.files[row] for row in todo], sample_rate_hz, decoder
        ),
        desc=f"decoding {name}".strip(),
        total=len(todo),
        unit="file",
        disable=None if progress and todo else True,
    )
    for index, audio, error in shown:
        row = todo[index]
        if error:
            failures.add(row, error)
            continue
        try:
            facts[row] = cache.put(corpus.files[row], audio, entries[row])
        except OSError as error:
            kept = sum(each is not None for each in facts.values())
            raise write_error(
                error, cache.directory, kept, len(corpus)
            ) from error
    for row in todo:
        if facts[row] is None and row not in failures.rows:
            failures.add(row, f"not decoded by {decoder}")
    rows = [row for row in facts if facts[row] is not None]
    if not rows:
        raise ValueError(
            f"None of {len(corpus)} files is usable. "
            f"{describe_failures(failures.reasons)}"
        )
    entries = [entries[row] for row in rows]
    return Clips(
        corpus.select(rows),
        entries,
        np.array([facts[row].length for row in rows], np.int64),
        sample_rate_hz,
        failures.reasons,
        np.array([source_size(entry) for entry in entries], np.int64),
        np.array([facts[row].checksum for row in rows], np.uint32),
        in_shards=in_shards,
    )


class Failures:
    """The files of a corpus that are left out, or the error of the first.

    Args:
        corpus: `Corpus`.
        strict: bool, whether the first is an `AudioError`.

    Attributes:
        rows: set of the indices of these files.
        reasons: dict of the reason by path.
    """

    def __init__(self, corpus, strict):
        self.corpus = corpus
        self.strict = strict
        self.rows, self.reasons = set(), {}

    def add(self, row, reason):
        """Leaves a file out, by its index, or raises."""
        if self.strict:
            raise AudioError(self.corpus.files[row], reason)
        self.rows.add(row)
        self.reasons[str(self.corpus.files[row])] = reason


def find_entries(corpus, cache, failures):
    """Finds the entries of a cache that belong to files, there or not.

    Args:
        corpus: `Corpus`.
        cache: `AudioCache`.
        failures: `Failures`, to which files are added that are not there.

    Returns:
        Dict of the path of the entry by the index of the file.
    """
    entries = {}
    for row, file in enumerate(corpus.files):
        try:
            entries[row] = cache.entry(file)
        except FileNotFoundError:
            failures.add(row, "no such file")
        except PackError as error:
            failures.add(row, str(error))
        except OSError as error:
            failures.add(row, error.strerror or str(error))
        except ValueError as error:
            failures.add(row, f"not a file name ({error})")
    return entries


def known_facts(corpus, cache, entries):
    """Finds what is decoded already, in entries or in shards.

    Args:
        corpus: `Corpus`.
        cache: `AudioCache`.
        entries: dict as `find_entries` returns it.

    Returns:
        Pair of a dict of length and checksum by the index of the file, `None`
        where it is to be decoded, and the dict of what is in shards, as
        `Clips` has it.
    """
    found = cache.check_all(list(entries.values()))
    facts = dict(zip(entries, found, strict=True))
    in_shards = shards.find(
        {entries[row]: corpus.files[row] for row in facts if facts[row] is None}
    )
    for row, entry in entries.items():
        if entry in in_shards:
            facts[row] = in_shards[entry].facts
    return facts, in_shards
