"""Causal models frame by frame: sound and a state in, scores and one out."""

import tensorflow as tf

from audio_tf.layers import (
    MultiScaleAverage,
    SinusoidalPositions,
    TemporalAveragePooling,
    TransformerBlock,
    WaveformFrontend,
)

# Samples that wait for their frame, and frames so far: both fit a float32.
COUNTS = 2


class Stream:
    """One step of a stream, for the signature `stream`.

    The state is opaque, float32 `(batch, n)`, and grows with the stream: it
    holds the samples that are no whole frame yet and, for each layer, the
    past frames that it still looks at. All rows of a batch are equally long
    and end together: a server must not batch the steps of several streams.

    Args:
        model: an `AudioClassifier`.

    Raises:
        ValueError: if a layer looks ahead, or the backbone is not made of
            layers that a stream is known for.
    """

    def __init__(self, model):
        self.model = model
        backbone = model.backbone
        parts = {
            TransformerBlock: BlockStage,
            MultiScaleAverage: AverageStage,
            TemporalAveragePooling: PoolingStage,
        }
        self.frontend = of_type(backbone, WaveformFrontend)
        self.positions = of_type(backbone, SinusoidalPositions)
        self.stages = [
            parts[type(layer)](layer)
            for layer in backbone.layers
            if type(layer) in parts
        ]
        if not self.stages or self.frontend is None or self.positions is None:
            raise ValueError(
                "A stream is known for AudioTransformerBackbone's layers. "
                f"Received: backbone={type(backbone).__name__}"
            )

    def __call__(self, waveform, last, state):
        """Scores the frames that `waveform` completes.

        Args:
            waveform: float32 `(batch, samples)`, what has come since.
            last: boolean `(batch,)`. If True, the stream ends here, and what
                is left is filled up as in a clip that ends.
            state: float32 `(batch, n)` of the step before; `(batch, 0)` or
                `(1, 0)` at the start.

        Returns:
            Dict of `scores`, float32 `(batch, frames, classes)`, and `state`.
        """
        batch = tf.shape(waveform)[0]
        reader = StateReader(state, batch)
        waiting, past = reader.counts
        last = tf.reduce_any(last)
        samples = tf.concat([reader.take(waiting, 1)[:, :, 0], waveform], 1)
        size = self.frontend.patch_size
        used = whole_windows(tf.shape(samples)[1], size, size, last)
        x = self.frontend(samples[:, : used * size])
        rest = samples[:, used * size :]
        blank = tf.zeros((batch, past, x.shape[-1]), x.dtype)
        x = self.positions(tf.concat([blank, x], 1))[:, past:]

        kept, frames = [rest], past
        for stage in self.stages:
            history = reader.take(stage.remembered(frames), x.shape[-1])
            seen = tf.concat([tf.cast(history, x.dtype), x], 1)
            new = tf.shape(x)[1]
            x = stage.step(seen, new, last)
            memory = stage.remembered(frames + new)
            seen = seen[:, tf.shape(seen)[1] - memory :]
            kept.append(tf.reshape(seen, (batch, memory * seen.shape[-1])))
            frames = stage.outputs(frames)
        counts = tf.stack([tf.shape(rest)[1], past + used])
        counts = tf.tile(tf.cast(counts, tf.float32)[None], (batch, 1))
        kept = [tf.cast(part, tf.float32) for part in kept]
        return {
            "scores": self.model.score_frames(x),
            "state": tf.concat([counts, *kept], 1),
        }


class StateReader:
    """Takes the parts of a state one after the other."""

    def __init__(self, state, batch):
        state = tf.broadcast_to(state, (batch, tf.shape(state)[1]))
        missing = tf.maximum(COUNTS - tf.shape(state)[1], 0)
        self.state = tf.pad(state, [[0, 0], [0, missing]])
        self.place = COUNTS

    @property
    def counts(self):
        # All rows are equally long; of an empty batch there is none.
        counts = tf.reduce_max(self.state[:, :COUNTS], 0)
        # A made-up state must not ask for more memory than it takes.
        width = tf.cast(tf.shape(self.state)[1], tf.float32)
        counts = tf.cast(tf.clip_by_value(counts, 0.0, width), tf.int32)
        return counts[0], counts[1]

    def take(self, length, dim):
        """The next `(batch, length, dim)`."""
        end = self.place + length * dim
        part = self.state[:, self.place : end]
        self.place = end
        return tf.reshape(part, (tf.shape(part)[0], length, dim))


class BlockStage:
    """A transformer block: each frame looks at all before it."""

    def __init__(self, layer):
        if not layer.causal:
            raise ValueError(
                f"A stream needs a causal model: {layer.name} looks ahead. "
                f"Received: causal={layer.causal}"
            )
        self.layer = layer

    def remembered(self, frames):
        """How many of so many past inputs are looked at later."""
        return frames

    def outputs(self, frames):
        """How many outputs so many inputs have given."""
        return frames

    def step(self, seen, count, last):
        """Outputs that were not there before the last `count` inputs."""
        del last
        return tf.cond(
            count > 0,
            lambda: self.layer.call_last(seen, count),
            lambda: seen[:, :0],
        )


class AverageStage:
    """Averages over a trailing window."""

    def __init__(self, layer):
        if not layer.causal:
            raise ValueError(
                "A stream needs multiscale='causal': averages over blocks "
                f"look ahead. Received: causal={layer.causal} of {layer.name}"
            )
        self.layer = layer

    def remembered(self, frames):
        return tf.minimum(frames, self.layer.max_window - 1)

    def outputs(self, frames):
        return frames

    def step(self, seen, count, last):
        del last
        return self.layer(seen)[:, tf.shape(seen)[1] - count :]


class PoolingStage:
    """Averages over windows; the frames of an unfinished one wait."""

    def __init__(self, layer):
        self.layer = layer

    def remembered(self, frames):
        return frames - self.outputs(frames) * self.layer.strides

    def outputs(self, frames):
        size, stride = self.layer.pool_size, self.layer.strides
        return whole_windows(frames, size, stride, tf.constant(False))

    def step(self, seen, count, last):
        del count
        size, stride = self.layer.pool_size, self.layer.strides
        ready = whole_windows(tf.shape(seen)[1], size, stride, last)
        return self.layer(seen)[:, :ready]


def whole_windows(length, size, stride, last):
    """Windows that `length` fills, or, at the end, that it begins."""
    filled = tf.maximum((length - size) // stride + 1, 0)
    begun = (length + stride - 1) // stride
    return tf.where(last, begun, filled)


def of_type(model, layer_type):
    """The first layer of that type, or `None`."""
    found = (each for each in model.layers if isinstance(each, layer_type))
    return next(found, None)


def endpoint(model):
    """Function and input specs of the signature `stream`."""
    step = Stream(model)

    def stream(
        waveform, last=tf.constant([False]), state=tf.zeros((1, 0), tf.float32)
    ):
        return step(waveform, last, state)

    return stream, [
        tf.TensorSpec((None, None), tf.float32, name="waveform"),
        tf.TensorSpec((None,), tf.bool, name="last"),
        tf.TensorSpec((None, None), tf.float32, name="state"),
    ]
