"""Features on disk, so that each utterance's are computed once."""

import dataclasses
import hashlib
import json
import pathlib

import numpy as np
from keras import ops
from tqdm.auto import tqdm

from audio_tf.data.cache import AudioCache, entry_length
from audio_tf.data.decode import RESAMPLER
from audio_tf.data.pipeline import Clips
from audio_tf.data.utterances import Frames, Utterances
from audio_tf.provenance import weights_sha256


@dataclasses.dataclass(frozen=True)
class FeatureClips(Clips):
    """Features of the clips of a corpus; `entries` and `lengths` are theirs.

    Attributes:
        dim: int, features of a frame.
        frames: `Frames`, when the frames are.
    """

    dim: int
    frames: Frames


class FeatureCache(AudioCache):
    """Features by the name of the audio's own entry.

    Args:
        directory: folder of the cache; made if missing.
        settings: all that the features depend on but the audio, for JSON.
    """

    def __init__(self, directory, settings):
        text = json.dumps(settings, sort_keys=True, default=str)
        digest = hashlib.sha1(text.encode()).hexdigest()[:16]
        self.directory = pathlib.Path(directory) / f"features-{digest}"
        self.directory.mkdir(parents=True, exist_ok=True)

    def entry_of(self, audio_entry):
        """Where the features of an entry of the `AudioCache` would be."""
        return self.directory / audio_entry.name[:2] / audio_entry.name


def cache_features(clips, features, cache_dir, batch_size=16, progress=True):
    """Brings the features of all clips into the cache.

    An interrupted run goes on where it stopped. A changed file or layer is a
    miss: entries are found by the audio, by the layer's configuration and by
    a checksum of its weights.

    Args:
        clips: `Clips`.
        features: `audio_tf.layers.SpeechFeatures`, or what is called as it is
            and has its `dim`, `sample_rate_hz`, `step_size`, `first_step`,
            `step_lengths`, `weights` and `get_config`, such as
            `audio_tf.probes.FrozenFeatures`.
        cache_dir: folder of the cache.
        batch_size: int, utterances computed at a time.
        progress: bool, whether to show a progress bar.

    Returns:
        `FeatureClips`, whose lengths are frames.

    Raises:
        ValueError: if the rates differ.
    """
    if features.sample_rate_hz != clips.sample_rate_hz:
        raise ValueError(
            f"Features of a waveform at {features.sample_rate_hz} Hz do not "
            f"fit clips at {clips.sample_rate_hz} Hz"
        )
    cache = FeatureCache(
        cache_dir,
        [
            type(features).__name__,
            own_config(features),
            weights_sha256(features.weights),
            RESAMPLER,
        ],
    )
    # The rate and the decoder are in the folder of the audio's entries.
    entries = [cache.entry_of(entry) for entry in clips.entries]
    wanted = [row for row, entry in enumerate(entries) if not entry.is_file()]
    if wanted:
        compute(clips, wanted, entries, cache, features, batch_size, progress)
    lengths = [entry_length(entry) // features.dim for entry in entries]
    return FeatureClips(
        clips.corpus,
        entries,
        np.array(lengths, np.int64),
        clips.sample_rate_hz,
        clips.failures,
        features.dim,
        Frames.of(features),
    )


def own_config(layer):
    """A layer's configuration, less what its outputs do not depend on."""
    config = layer.get_config()
    return {k: config[k] for k in config if k not in ("name", "trainable")}


def compute(clips, wanted, entries, cache, features, batch_size, progress):
    """Computes and stores the features of the clips `wanted`."""
    part = clips.select(wanted)
    utterances = Utterances(part)
    batches = utterances.batch_rows(np.arange(len(part)), batch_size)
    for rows in tqdm(
        batches,
        desc="features",
        unit="batch",
        disable=None if progress else True,
    ):
        waveform, lengths, _ = utterances.read_batch(rows, np.zeros_like(rows))
        x = ops.convert_to_numpy(features(waveform, lengths))
        steps = ops.convert_to_numpy(features.step_lengths(lengths))
        for row, each, count in zip(rows, x, steps, strict=True):
            source = part.corpus.files[row]
            cache.put(source, each[:count], entries[wanted[row]])
