"""Features on disk, so that they are computed once for each utterance.

An entry holds `(frames, dim)` little-endian float32 behind a header, see
`cache`: the output of the features' layer for one utterance, without padding.
"""

import dataclasses
import hashlib
import json
import pathlib
import shutil

import keras
import numpy as np
from keras import ops
from tqdm.auto import tqdm

from audio_tf.audio.resampling import RESAMPLER
from audio_tf.data import shards
from audio_tf.data.cache import AudioCache, write_error
from audio_tf.data.folders import describe
from audio_tf.data.frame_labels import Frames
from audio_tf.data.utterances import Utterances
from audio_tf.ops.checks import check_sizes
from audio_tf.ops.weights import weights_sha256

# To be raised when features of the same settings and weights change.
VERSION = 2
# Frames that are computed at once, at most: attention maps of an hour of
# utterances would not fit.
MAX_FRAMES = 16_000


class FeatureCache(AudioCache):
    """Features of utterances, each named as the entry of its audio is.

    Args:
        directory: path of the cache's folder, made if missing.
        settings: list of all that the features depend on beside the audio,
            which JSON or Keras can serialise; other settings have a folder of
            their own.
    """

    def __init__(self, directory, settings):
        text = json.dumps(
            settings,
            sort_keys=True,
            default=keras.saving.serialize_keras_object,
        )
        digest = hashlib.sha1(text.encode()).hexdigest()[:16]
        self.directory = pathlib.Path(directory) / f"features-{digest}"
        self.directory.mkdir(parents=True, exist_ok=True)

    def entry_of(self, audio_entry):
        """Returns the path of the features of an entry of the `AudioCache`."""
        # With the folder, which tells the rate and the decoder.
        return self.directory.joinpath(*audio_entry.parts[-3:])


def cache_features(clips, features, cache_dir, batch_size=16, progress=True):
    """Computes the features of all clips into the cache.

    An interrupted run goes on where it stopped; a damaged entry is made again,
    with a warning. A changed file or layer is a miss: entries are found by the
    audio, by the layer's configuration and by a checksum of its weights. Bad
    audio files are none of the clips, `prepare` has left them out.

    Args:
        clips: `Clips` of samples.
        features: `audio_tf.layers.SpeechFeatures`, or another object that is
            called in the same way and has its `dim`, `sample_rate_hz`,
            `frame_size`, `first_middle`, `frame_lengths`, `weights` and
            `get_config`, such as `audio_tf.analysis.probes.FrozenFeatures`.
        cache_dir: path of the cache's folder.
        batch_size: int, utterances computed at a time.
        progress: bool, whether to show a progress bar.

    Returns:
        `Clips` of features: `lengths` are frames, `dim` and `frames` are set.

    Raises:
        ValueError: if the rates differ.
        OSError: if the disk has no room for the features; those that are
            written are kept.

    Examples:
        >>> import soundfile
        >>> from audio_tf import corpora, data, layers
        >>> soundfile.write("a.wav", [0.5] * 16_000, 16_000)
        >>> corpus = corpora.Corpus(["a.wav"], [["dog"]], ["dog"])
        >>> clips = data.prepare(corpus, 16_000, "cache", progress=False)
        >>> clips = data.cache_features(
        ...     clips, layers.SpeechFeatures("paper"), "cache", progress=False
        ... )
        >>> clips.dim, clips.lengths.tolist()
        (480, [27])
    """
    check_sizes(batch_size=batch_size)
    cache = cache_of(features, clips.sample_rate_hz, cache_dir)
    describe(cache.directory, summary(features))
    entries = [cache.entry_of(entry) for entry in clips.entries]
    facts = cache.check_all(entries)
    in_shards = shards.find_features(
        clips,
        {
            entry: source
            for entry, source, each in zip(
                entries, clips.entries, facts, strict=True
            )
            if each is None
        },
    )
    facts = [
        in_shards[entry].facts if entry in in_shards else each
        for entry, each in zip(entries, facts, strict=True)
    ]
    wanted = [row for row, each in enumerate(facts) if each is None]
    if wanted:
        made = compute(
            clips, wanted, entries, cache, features, batch_size, progress
        )
        facts = [each or made[row] for row, each in enumerate(facts)]
    return dataclasses.replace(
        clips,
        entries=entries,
        lengths=np.array(
            [each.length // features.dim for each in facts], np.int64
        ),
        dim=features.dim,
        frames=Frames.of(features),
        in_shards=in_shards,
    )


def cache_of(features, sample_rate_hz, cache_dir):
    """Returns the `FeatureCache` of what computes features.

    Args:
        features: as `cache_features` takes it.
        sample_rate_hz: int, the rate of the samples.
        cache_dir: path of the cache's folder.

    Raises:
        ValueError: if the rates differ.
    """
    if features.sample_rate_hz != sample_rate_hz:
        raise ValueError(
            f"Features of a waveform at {features.sample_rate_hz} Hz do not "
            f"fit clips at {sample_rate_hz} Hz"
        )
    return FeatureCache(
        cache_dir,
        [
            type(features).__name__,
            own_config(features),
            weights_sha256(features.weights),
            RESAMPLER,
            VERSION,
        ],
    )


def summary(features):
    """Returns a text on what computes features, for people.

    Args:
        features: as `cache_features` takes it.
    """
    return (
        f"{type(features).__name__}, {features.dim} values every "
        f"{features.frame_size / features.sample_rate_hz:g} s, of audio at "
        f"{features.sample_rate_hz} Hz, weights "
        f"{weights_sha256(features.weights)[:12]}"
    )


def own_config(layer):
    """Returns a layer's configuration without what moves no output."""
    config = layer.get_config()
    return {k: config[k] for k in config if k not in ("name", "trainable")}


def compute(clips, wanted, entries, cache, features, batch_size, progress):
    """Computes and stores the features of some clips.

    Args:
        clips: `Clips` of samples.
        wanted: list of int, the indices of the clips to be computed.
        entries: list of the paths of all clips' features.
        cache: `FeatureCache`.
        features: as `cache_features` takes it.
        batch_size: int.
        progress: bool.

    Returns:
        Dict of `EntryFacts` by index.
    """
    part = clips.select(wanted)
    counts = Frames.of(features).lengths(part.lengths)
    check_space(cache.directory, counts, features.dim)
    made = {}
    for row, x in computed(part, features, batch_size, progress):
        source, wide = part.corpus.files[row], wanted[row]
        try:
            made[wide] = cache.put(source, x, entries[wide])
        except OSError as error:
            kept = len(clips) - len(wanted) + len(made)
            raise write_error(
                error, cache.directory, kept, len(clips)
            ) from error
    return made


def computed(clips, features, batch_size=16, progress=False):
    """Computes the features of clips, those of like length together.

    Args:
        clips: `Clips` of samples.
        features: as `cache_features` takes it.
        batch_size: int.
        progress: bool.

    Yields:
        Pairs of the index of a clip and its features, float32
        `(frames, dim)`.
    """
    utterances, frames = Utterances(clips), Frames.of(features)
    batches = []
    for rows in utterances.batch_rows(np.arange(len(clips)), batch_size):
        longest = int(frames.lengths(clips.lengths[rows].max()))
        size = max(1, MAX_FRAMES // max(1, longest))
        batches += np.split(rows, range(size, len(rows), size))
    for rows in tqdm(
        batches,
        desc="features",
        unit="batch",
        disable=None if progress else True,
    ):
        waveform, lengths, _ = utterances.read_batch(rows, np.zeros_like(rows))
        x = ops.convert_to_numpy(features(waveform, lengths))
        counts = ops.convert_to_numpy(features.frame_lengths(lengths))
        for row, each, count in zip(rows, x, counts, strict=True):
            yield int(row), each[:count]


def check_space(directory, frames, dim):
    """Raises an `OSError` if a disk has no room for features.

    Args:
        directory: path on that disk.
        frames: int array `(clips,)`, frames of each clip.
        dim: int, features of a frame.
    """
    needed = 4 * dim * int(np.sum(frames))
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise OSError(
            f"{directory}: features need {needed / 1e9:.1f} GB of the disk. "
            f"Received: {free / 1e9:.1f} GB free"
        )
