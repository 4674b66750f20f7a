"""Hides runs of frames, for models that learn by filling them in."""

import keras
from keras import ops

from audio_tf.ops import masks
from audio_tf.ops.checks import (
    check_rates,
    check_seeds,
    check_sizes,
    is_number,
)
from audio_tf.ops.layer import FRAMES, Layer

# The two public readings of "masked acoustic modelling"; the papers state
# neither. A run of `paper` is one stacked frame.
MASKING_POLICIES = {
    "paper": {"run_frames": 1, "gap_frames": 2},
    "s3prl": {"run_frames": 7, "gap_frames": None},
}


def expected_runs(lengths, mask_rate, run_frames):
    """Computes `lengths * mask_rate / run_frames`, free of rounding errors.

    15 % of 20 frames are 3, neither just below nor just above, so that the
    number can be floored or rounded as if it were computed in decimals.

    Args:
        lengths: integer tensor `(batch, 1)`, real frames of each clip.
        mask_rate: float, the share of the frames to be masked.
        run_frames: int, frames of a run.

    Returns:
        Float32 tensor `(batch, 1)`, a multiple of 1 / 4096.
    """
    runs = ops.cast(lengths, "float32") * (mask_rate / run_frames)
    return ops.round(runs * 4096.0) / 4096.0


def ranks(noise, candidates):
    """Draws a random permutation of each row's candidates.

    Args:
        noise: float32 `(batch, time)` in [0, 1).
        candidates: boolean `(batch, time)`.

    Returns:
        Pair of int32 `(batch, time)`: `order`, the positions with all
        candidates before all others, and `rank`, its inverse.
    """
    order = ops.argsort(ops.where(candidates, noise, 2.0), axis=1)
    return order, ops.argsort(order, axis=1)


@keras.saving.register_keras_serializable("audio_tf")
class FrameMasking(Layer):
    """A layer that hides runs of frames, and says which it chose.

    It does what masked acoustic modelling does in Mockingjay
    (arXiv 1910.12638), as the code of "Audio ALBERT" (arXiv 2005.08575) has
    it; `n` is the number of real frames of a clip:

    - with a `gap_frames` (s3prl's branch AlbertNew, `utils/mam.py`): runs begin
      at `r, r + c + gap_frames, ...`, below `n - c - 1`, of which
      `max(1, floor(n * mask_rate / c))` are drawn; `r` is random below
      `c = run_frames`, so that 0 is the only one for runs of one frame.
      A clip with room for fewer than two such starts is left alone;
    - with `gap_frames=None` (s3prl's HEAD, `pretrain/mockingjay/task.py`):
      `round(n * mask_rate / c)` runs begin anywhere up to
      `max(n - c - 1, 0)` and may overlap.

    One die is cast for each clip, not for each frame: all its runs are set to
    zero, or replaced by as many runs of the same clip that begin anywhere, or
    left as they are. All three count as masked. Where runs overlap, the later
    one's replacement is seen. Padding is neither masked nor drawn from.

    In one point this differs from what `utils/mam.py` does when it is run: in
    the clips whose frames are to be replaced, about one in ten, its
    `np.random.permutation(valid_index)` gets an array of one index, so that
    every chosen frame becomes the one frame `n - 2`. Here each chosen run is
    replaced by another one, drawn from the whole clip, as in Mockingjay.

    Args:
        mask_rate: float, the share of a clip's frames to be masked.
        run_frames: int, frames of a run.
        gap_frames: int, frames between a run and where the next one may
            begin, 2 or 3 in the authors' settings; `None` lets runs overlap.
        zero_rate: float, the share of clips whose runs are set to zero.
        replace_rate: float, the share of clips whose runs are replaced.
        evaluation_seed: int, the seed of the draws outside training, or `None`
            to mask in training only. They are the same at each call with
            inputs of a shape; TensorFlow draws others of that seed in a graph
            that XLA compiles, as `evaluate` of a compiled model has it, than
            outside of one.
        seed: int or `None`, the seed of the draws in training.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True for the real frames, which come
            first, or `None` where all are real or `lengths` are given.
        lengths: integer `(batch,)`, real frames of each clip, in place of a
            mask, or `None`.
        training: bool, whether to draw by `seed` or by `evaluation_seed`.

    Returns:
        Pair of the masked inputs `(batch, time, dim)` and a boolean tensor
        `(batch, time)`, True where a frame was chosen.

    Raises:
        ValueError: if an argument is out of range, or both a mask and lengths
            are given.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> masking = layers.FrameMasking(mask_rate=0.15, run_frames=3, seed=0)
        >>> frames = np.ones((1, 40, 16), "float32")
        >>> masked, chosen = masking(frames, training=True)
        >>> tuple(masked.shape), tuple(chosen.shape), int(chosen.numpy().sum())
        ((1, 40, 16), (1, 40), 6)
    """

    first_input = FRAMES

    def __init__(
        self,
        mask_rate=0.15,
        run_frames=1,
        gap_frames=2,
        zero_rate=0.8,
        replace_rate=0.1,
        evaluation_seed=None,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_sizes(run_frames=run_frames)
        check_seeds(evaluation_seed=evaluation_seed)
        if gap_frames is not None and (
            isinstance(gap_frames, bool)
            or not isinstance(gap_frames, int)
            or gap_frames < 0
        ):
            raise ValueError(
                "`gap_frames` must be None or an integer, at least 0. "
                f"Received: gap_frames={gap_frames!r}"
            )
        shares = (mask_rate, zero_rate, replace_rate)
        if not (
            all(is_number(share) and share >= 0.0 for share in shares)
            and max(mask_rate, zero_rate + replace_rate) <= 1.0
        ):
            raise ValueError(
                "`mask_rate` and `zero_rate + replace_rate` must be in "
                f"[0, 1]. Received: mask_rate={mask_rate}, "
                f"zero_rate={zero_rate}, replace_rate={replace_rate}"
            )
        self.supports_masking = True
        self.mask_rate = mask_rate
        self.run_frames = run_frames
        self.gap_frames = gap_frames
        self.zero_rate = zero_rate
        self.replace_rate = replace_rate
        self.evaluation_seed = evaluation_seed
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, input_shape):
        self.built = True

    def compute_mask(self, inputs, mask=None):
        # Which frames are real stays; which were chosen has no mask.
        return None if mask is None else (mask, None)

    def call(self, inputs, mask=None, lengths=None, training=None):
        inputs = self.as_floats(inputs)
        batch, time = ops.shape(inputs)[0], ops.shape(inputs)[1]
        seed = self.seed_generator if training else self.evaluation_seed
        if seed is None:
            return inputs, ops.zeros((batch, time), dtype="bool")
        noise = keras.random.uniform(
            (batch, 2 * time + 2), dtype="float32", seed=seed
        )
        if mask is not None:
            if lengths is not None:
                raise ValueError(
                    "Real frames are said by a mask or by lengths, not by "
                    f"both. Received: mask={mask}, lengths={lengths}"
                )
            masks.check_shape(mask, inputs)
            lengths = masks.to_lengths(mask)
        lengths = masks.real_lengths(inputs, lengths)
        masked, origin = self.draw(noise, lengths, time)

        dim = inputs.shape[-1]
        rows = ops.expand_dims(ops.arange(batch, dtype="int32"), 1) * time
        replaced = ops.take(
            ops.reshape(inputs, (-1, dim)), rows + origin, axis=0
        )  # (B, T, F)
        die = noise[:, -1:]
        zero = ops.logical_and(masked, die < self.zero_rate)
        keep = die >= self.zero_rate + self.replace_rate
        outputs = ops.where(
            ops.expand_dims(ops.logical_and(masked, ~keep), -1),
            replaced,
            inputs,
        )
        zeros = ops.zeros_like(outputs)
        return ops.where(ops.expand_dims(zero, -1), zeros, outputs), masked

    def draw(self, noise, lengths, time):
        """Chooses frames to mask, and the frames that would replace them.

        Args:
            noise: float32 `(batch, 2 * time + 2)` in [0, 1).
            lengths: int32 `(batch,)`, real frames of each clip.
            time: integer or scalar tensor.

        Returns:
            Pair of the mask, boolean `(batch, time)`, and for each frame
            where its replacement is, int32 `(batch, time)`.
        """
        size, real = self.run_frames, masks.from_lengths(lengths, time)
        lengths = ops.expand_dims(lengths, 1)
        positions = ops.expand_dims(ops.arange(time, dtype="int32"), 0)
        last = ops.maximum(lengths - size - 1, 0)
        anywhere = positions <= last
        runs = expected_runs(lengths, self.mask_rate, size)
        if self.gap_frames is None:
            candidates, runs = anywhere, ops.round(runs)
        else:
            period = size + self.gap_frames
            first = ops.cast(ops.floor(noise[:, -2:-1] * size), "int32")
            room = lengths - size - 1 - first
            candidates = ops.logical_and(
                ops.logical_and(positions >= first, positions - first < room),
                ops.logical_and(
                    (positions - first) % period == 0, room >= 2 * period
                ),
            )
            runs = ops.maximum(ops.floor(runs), 1.0)
        _, rank = ranks(noise[:, :time], candidates)
        chosen = ops.logical_and(candidates, rank < ops.cast(runs, "int32"))
        others, _ = ranks(noise[:, time : 2 * time], anywhere)

        # The latest start within reach of each frame, or -1.
        latest = ops.cast(ops.where(chosen, positions, -1), "float32")
        # One more than the window needs: pooling to no frame ends a process.
        latest = ops.pad(latest, [[0, 0], [size, 0]], constant_values=-1.0)
        latest = ops.max_pool(
            ops.expand_dims(latest, -1),
            size,
            strides=1,
            padding="valid",
            data_format="channels_last",
        )
        latest = ops.cast(ops.squeeze(latest, -1)[:, 1:], "int32")
        masked = ops.logical_and(latest >= 0, real)

        # The k-th run drawn is replaced by the k-th of the others.
        start = ops.maximum(latest, 0)
        origin = ops.take_along_axis(
            others, ops.take_along_axis(rank, start, axis=1), axis=1
        )
        origin = origin + positions - start
        return masked, ops.clip(origin, 0, ops.maximum(lengths - 1, 0))

    def compute_output_spec(
        self, inputs, mask=None, lengths=None, training=None
    ):
        return (
            keras.KerasTensor(inputs.shape, dtype=self.compute_dtype),
            keras.KerasTensor(inputs.shape[:2], dtype="bool"),
        )

    def get_config(self):
        return {
            **super().get_config(),
            "mask_rate": self.mask_rate,
            "run_frames": self.run_frames,
            "gap_frames": self.gap_frames,
            "zero_rate": self.zero_rate,
            "replace_rate": self.replace_rate,
            "evaluation_seed": self.evaluation_seed,
            "seed": self.seed,
        }


@keras.saving.register_keras_serializable("audio_tf")
class LearnedFrameMasking(Layer):
    """A layer that replaces runs of frames by a learned one, in training.

    Each frame begins a run with the probability `mask_rate / run_frames`, so
    that about `mask_rate` of all frames are replaced, less where runs
    overlap: the masking in time of wav2vec 2.0 (arXiv 2006.11477, section
    3.1), which its authors use to train on labels, too.

    Args:
        mask_rate: float, the share of the frames to be replaced.
        run_frames: int, frames of a run.
        seed: int or `None`, the seed of the draws.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        training: bool, whether to replace anything; a frozen layer does not.

    Returns:
        Tensor `(batch, time, dim)`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> masking = layers.LearnedFrameMasking(mask_rate=0.2, run_frames=4)
        >>> tuple(masking(np.ones((1, 40, 16), "float32"), training=True).shape)
        (1, 40, 16)
    """

    first_input = FRAMES

    def __init__(self, mask_rate=0.05, run_frames=10, seed=None, **kwargs):
        super().__init__(**kwargs)
        check_rates(mask_rate=mask_rate)
        check_sizes(run_frames=run_frames)
        self.supports_masking = True
        self.mask_rate = mask_rate
        self.run_frames = run_frames
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, input_shape):
        self.embedding = self.add_weight(
            shape=(input_shape[-1],),
            initializer=keras.initializers.RandomUniform(0.0, 1.0),
            name="embedding",
        )

    def call(self, inputs, training=None):
        inputs = self.as_floats(inputs)
        if not (training and self.trainable):
            return inputs
        batch, time = ops.shape(inputs)[0], ops.shape(inputs)[1]
        begins = keras.random.uniform((batch, time), seed=self.seed_generator)
        begins = begins < self.mask_rate / self.run_frames
        # How many have begun, and how many of them have ended.
        begun = ops.cumsum(ops.cast(begins, "int32"), axis=1)
        ended = ops.pad(begun, [[0, 0], [self.run_frames, 0]])[:, :time]
        embedding = ops.cast(self.embedding, inputs.dtype)
        hidden = ops.expand_dims(begun > ended, -1)
        return ops.where(hidden, embedding, inputs)

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "mask_rate": self.mask_rate,
            "run_frames": self.run_frames,
            "seed": self.seed,
        }
