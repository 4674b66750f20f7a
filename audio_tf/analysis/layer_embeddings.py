"""Embeddings of chunks by every layer of a frozen encoder, for the cache."""

import keras
import numpy as np

from audio_tf import compiling
from audio_tf.audio.chunking import Cutting, chunk_starts
from audio_tf.data.feature_cache import own_config
from audio_tf.layers import MaskedMean
from audio_tf.models.gaussian_adaptive_transformer import LayerFrames
from audio_tf.models.inputs import symbolic

# Chunks that are run through the encoder at once.
BATCH_SIZE = 16
# Seconds of whole clips that are, as far as they are more than one.
BATCH_S = 160.0
# Keys of configurations that move no output.
NOT_OF_THE_OUTPUT = ("name", "trainable", "build_config")


class LayerEmbeddings:
    """Hidden states of an encoder, averaged over the time of each chunk.

    `audio_tf.data.cache_features` takes it: the chunks of a clip are the
    frames of its features, and all layers the values of a frame. Chunks are
    those that an `AudioClassifier` scores: a shorter clip is repeated.

    Args:
        encoder: an `AudioBackbone` of waveforms, which is run in inference.
        chunk_s: float, the seconds of a chunk, or `None` for whole clips,
            each of which is one chunk.

    Call arguments:
        waveform: float32 array `(batch, samples)`, full scale 1.
        lengths: int32 array `(batch,)`, real samples of each clip.

    Returns:
        Float32 array `(batch, chunks, layers * dim)`; chunks behind a clip
        are zero.

    Attributes:
        layers: int, the hidden states: the input of the first block and the
            output of each.

    Raises:
        ValueError: if a chunk holds no sample, or is longer than the encoder
            takes.
    """

    max_frames = None

    def __init__(self, encoder, chunk_s):
        self.encoder = encoder
        self.chunk_s = chunk_s
        self.sample_rate_hz = encoder.sample_rate_hz
        longest = encoder.max_samples or np.inf
        # Whole clips have no frames of a size; a second stands for it.
        self.frame_size = round((chunk_s or 1.0) * self.sample_rate_hz)
        if chunk_s is not None and not 1 <= self.frame_size <= longest:
            raise ValueError(
                f"A chunk must have from 1 to {longest} samples, which the "
                f"encoder takes. Received: chunk_s={chunk_s} at "
                f"{self.sample_rate_hz} Hz"
            )
        self.first_middle = self.frame_size / 2
        self.layers = len(encoder.blocks) + 1
        inputs = symbolic("waveform")
        frames = LayerFrames(encoder, list(range(self.layers)))(inputs)
        pooled = MaskedMean(dtype="float32")(
            frames["sequence_output"], mask=frames["frame_mask"]
        )
        self.dim = pooled.shape[-1]
        self.model = keras.Model(inputs, pooled)
        self.model.compile(jit_compile=compiling.jit_compile())

    @property
    def weights(self):
        """Returns the weights of the encoder."""
        return self.encoder.weights

    def frame_lengths(self, lengths):
        """Returns the chunks of clips of so many samples, int64 as given."""
        size, lengths = self.frame_size, np.asarray(lengths)
        if self.chunk_s is None:
            return np.ones(lengths.shape, np.int64)
        counts = [len(chunk_starts(each, size, size)) for each in lengths.flat]
        return np.array(counts, np.int64).reshape(lengths.shape)

    def __call__(self, waveform, lengths):
        if self.chunk_s is None:
            most = round(BATCH_S * self.sample_rate_hz)
            size = max(1, most // waveform.shape[1])
            parts = []
            for start in range(0, len(waveform), size):
                rows = slice(start, start + size)
                parts.append(self.embed(waveform[rows], lengths[rows]))
            return np.concatenate(parts)[:, np.newaxis]
        cutting = Cutting(self.frame_size, self.frame_size)
        chunks = [
            cutting.cut(audio[:length])[0]
            for audio, length in zip(waveform, lengths, strict=True)
        ]
        counts = [len(each) for each in chunks]
        rows = np.concatenate(chunks).astype("float32")
        found = np.concatenate(
            [
                self.embed(part, np.full(len(part), self.frame_size, "int32"))
                for part in (
                    rows[start : start + BATCH_SIZE]
                    for start in range(0, len(rows), BATCH_SIZE)
                )
            ]
        )
        outputs = np.zeros((len(counts), max(counts), self.dim), "float32")
        place = 0
        for row, count in zip(outputs, counts, strict=True):
            row[:count] = found[place : place + count]
            place += count
        return outputs

    def embed(self, waveform, lengths):
        """Embeds chunks: float32 `(batch, samples)` to `(batch, dim)`."""
        return self.model.predict_on_batch(
            {"waveform": waveform, "lengths": lengths}
        )

    def get_config(self):
        """Returns a dict of all that outputs depend on beside the weights."""
        return {
            "encoder": [
                type(self.encoder).__name__,
                without_names(own_config(self.encoder)),
            ],
            "chunk_s": self.chunk_s,
        }


def without_names(config):
    """Returns a configuration without what moves no output, at any depth."""
    if isinstance(config, dict):
        # The name of a policy is the precision of what is computed.
        return {
            name: value if name == "dtype" else without_names(value)
            for name, value in config.items()
            if name not in NOT_OF_THE_OUTPUT
        }
    if isinstance(config, (list, tuple)):
        return [without_names(value) for value in config]
    return config
