"""Causal models frame by frame: samples and a state in, scores and one out."""

import tensorflow as tf

from audio_tf.ops import blocks

# Samples that wait for their frame, and frames so far: both fit a float32.
COUNTS = 2


class Stream:
    """Scores a stream piece by piece, for the signature `stream`.

    The state is opaque, float32 `(batch, n)`, and grows with the stream: it
    holds the samples that are no whole frame yet and, for each layer up to
    the highest that is scored, the past frames that it still looks at. All
    rows of a batch are equally long and end together: a server must not batch
    the pieces of several streams.

    Args:
        model: an `AudioClassifier`.

    Raises:
        ValueError: if the backbone does not stream; it names what looks ahead,
            or takes samples of frames before.
    """

    def __init__(self, model):
        self.model = model
        self.backbone = model.backbone
        if not self.backbone.streams:
            reasons = [
                f"{stage.name} does"
                for stage in self.backbone.stages
                if not stage.streams
            ]
            if not self.backbone.embeds_pieces:
                reasons.insert(
                    0,
                    "what makes frames of the waveform takes more than the "
                    "samples of each, as mel bands do",
                )
            raise ValueError(
                "A stream needs a model that hears pieces of sound one by "
                f"one, in which nothing looks ahead, but {reasons[0]}. "
                f"Received: a backbone {type(self.backbone).__name__} with "
                f"causal={self.backbone.causal}"
            )

    def __call__(self, waveform, last, state):
        """Scores the frames that `waveform` completes.

        Args:
            waveform: float32 `(batch, samples)`, the samples since the piece
                before.
            last: boolean `(batch,)`. If True, the stream ends here, and its
                last frame is filled up with zeros, as that of a clip.
            state: float32 `(batch, n)`, the state that the piece before gave;
                `(batch, 0)` or `(1, 0)` at the start.

        Returns:
            Dict of `scores`, float32 `(batch, frames, classes)`, and `state`,
            float32 `(batch, m)`, for the next piece.
        """
        batch = tf.shape(waveform)[0]
        reader = StateReader(state, batch)
        waiting, past = reader.counts
        last = tf.reduce_any(last)
        samples = tf.concat([reader.take(waiting, 1)[:, :, 0], waveform], 1)
        size = self.backbone.frame_size
        used = blocks.whole_windows(tf.shape(samples)[1], size, size, last)
        x = self.backbone.embed_next(samples[:, : used * size], past)
        rest = samples[:, used * size :]

        kept, frames, outputs = [rest], past, [x]
        for stage in self.model.frame_stages:
            history = reader.take(stage.stream_memory(frames), x.shape[-1])
            seen = tf.concat([tf.cast(history, x.dtype), x], 1)
            new = tf.shape(x)[1]
            x = stage.stream_piece(seen, new, last)
            outputs.append(x)
            memory = stage.stream_memory(frames + new)
            seen = seen[:, tf.shape(seen)[1] - memory :]
            kept.append(tf.reshape(seen, (batch, memory * seen.shape[-1])))
            frames = stage.stream_outputs(frames)
        counts = tf.stack([tf.shape(rest)[1], past + used])
        counts = tf.tile(tf.cast(counts, tf.float32)[None], (batch, 1))
        kept = [tf.cast(part, tf.float32) for part in kept]
        state = tf.concat([counts, *kept], 1)
        # As wide as there are frames, also where no layer looks at them all:
        # `StateReader` believes no larger number.
        missing = tf.maximum(past + used - tf.shape(state)[1], 0)
        # TensorFlow's fused convolutions give no rows the wrong channels: of
        # a piece that completes no frame, one of zeros is scored and dropped.
        picked = tf.pad(
            self.model.pick_frames(outputs), [[0, 0], [0, 1], [0, 0]]
        )
        return {
            "scores": self.model.score_frames(picked)[:, :-1],
            "state": tf.pad(state, [[0, 0], [0, missing]]),
        }


class StateReader:
    """Takes the parts of a state one after the other.

    Args:
        state: float32 `(batch, n)` or `(1, n)`.
        batch: int scalar, the rows of the stream.
    """

    def __init__(self, state, batch):
        state = tf.broadcast_to(state, (batch, tf.shape(state)[1]))
        missing = tf.maximum(COUNTS - tf.shape(state)[1], 0)
        self.state = tf.pad(state, [[0, 0], [0, missing]])
        self.place = COUNTS

    @property
    def counts(self):
        """The samples that wait and the frames so far, int32 scalars."""
        # All rows are equally long; of an empty batch there is none.
        counts = tf.reduce_max(self.state[:, :COUNTS], 0)
        # A made-up state must not ask for more memory than it takes.
        width = tf.cast(tf.shape(self.state)[1], tf.float32)
        counts = tf.cast(tf.clip_by_value(counts, 0.0, width), tf.int32)
        return counts[0], counts[1]

    def take(self, length, dim):
        """Returns the next part of the state as `(batch, length, dim)`."""
        end = self.place + length * dim
        part = self.state[:, self.place : end]
        self.place = end
        return tf.reshape(part, (tf.shape(part)[0], length, dim))


def endpoint(model):
    """Returns function and input specs of the signature `stream`."""
    score = Stream(model)

    def stream(
        waveform, last=tf.constant([False]), state=tf.zeros((1, 0), tf.float32)
    ):
        return score(waveform, last, state)

    return stream, [
        tf.TensorSpec((None, None), tf.float32, name="waveform"),
        tf.TensorSpec((None,), tf.bool, name="last"),
        tf.TensorSpec((None, None), tf.float32, name="state"),
    ]
