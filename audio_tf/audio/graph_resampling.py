"""The resampler of `audio_tf.audio.resampling` in a TensorFlow graph."""

import numpy as np
import tensorflow as tf

from audio_tf.audio import resampling
from audio_tf.audio.resampling import CROSSINGS, REACH

# Samples in the windows that are in memory at once.
BLOCK = 2**18


@tf.autograph.experimental.do_not_convert
def resample_in_graph(audio, rate_hz, target_rate_hz):
    """Resamples as `resample` does, from a rate known when the graph runs.

    The taps are computed in each call. They and the windows take some 10 MB
    whatever the rates and the length.

    Args:
        audio: float32 tensor `(samples,)`.
        rate_hz: int32 scalar tensor, its rate, at least 1 unless `audio` is
            empty.
        target_rate_hz: int, the rate wanted.

    Returns:
        Float32 tensor `(ceil(samples * target_rate_hz / rate_hz),)`.
    """
    unchanged = (rate_hz == target_rate_hz) | (tf.size(audio) == 0)
    resampled = tf.cond(
        unchanged,
        lambda: tf.identity(audio),
        lambda: resample_by_groups(audio, rate_hz, target_rate_hz),
    )
    return tf.ensure_shape(resampled, (None,))


def resample_by_groups(audio, rate_hz, target_rate_hz):
    """Resamples audio that is not empty and has another rate.

    See `resample_in_graph` for arguments and result.
    """
    count = tf.size(audio, tf.int64)
    rate_hz = tf.cast(rate_hz, tf.int64)
    # The divisors of the target are known: no loop for the gcd.
    divisors = [
        d for d in range(1, target_rate_hz + 1) if target_rate_hz % d == 0
    ]
    grouping = [resampling.grouping(target_rate_hz // d) for d in divisors]
    choice = tf.reduce_max(
        tf.where(rate_hz % divisors == 0, tf.range(len(divisors)), 0)
    )
    divisor = tf.constant(divisors, tf.int64)[choice]
    up, down = target_rate_hz // divisor, rate_hz // divisor
    size, phases = tf.unstack(tf.constant(grouping, tf.int64)[choice])
    length = -(-count * up // down)
    groups = -(-length // size)
    # As in `resampling.Plan`.
    widest = tf.maximum(up, down)
    left = -(-REACH * widest // up)
    width = left + ((size - 1) * down + REACH * widest) // up + 2
    scale = as_float64(up) / as_float64(widest)

    def window_starts(groups):
        """Returns the first sample of each group's window, and its phase."""
        places = groups * (size * down)
        return places // up, as_float64(places % up) / as_float64(up)

    def filter_taps(nodes):
        """Returns the taps at some phases, float32 `(nodes, size, width)`."""
        outputs = as_float64(tf.range(size) * down) / as_float64(up)
        samples = as_float64(tf.range(width) - left)
        offsets = outputs[:, None] - samples
        share = (nodes[:, None, None] + offsets) * (scale / REACH)
        share = tf.minimum(tf.abs(tf.cast(share, tf.float32)), 1)
        angle = tf.maximum(share * (np.pi * CROSSINGS), 1e-6)  # Not 0 / 0.
        window = tf.math.polyval(resampling.window(), 1 - share * share)
        return tf.sin(angle) / angle * window * tf.cast(scale, tf.float32)

    def by_phase(phases):
        # A short clip has fewer groups than there are phases.
        phases = tf.minimum(phases, groups)
        periods = -(-groups // phases)
        starts, nodes = window_starts(tf.range(phases))
        taps = filter_taps(nodes)
        # Windows of a period begin in one row of samples.
        advance = tf.maximum(phases * size * down // up, 1)
        rows_of_one = -(-(starts[-1] + width) // advance)
        right = (periods + rows_of_one) * advance - left - count
        rows = tf.reshape(
            tf.pad(audio, [[left, tf.maximum(right, 0)]])[
                : (periods + rows_of_one) * advance
            ],
            tf.stack([-1, advance]),
        )
        places = starts[:, None] + tf.range(width)

        def filter_block(begin, end):
            wanted = tf.range(begin, end)[:, None] + tf.range(rows_of_one)
            samples = tf.reshape(
                tf.gather(rows, wanted), tf.stack([end - begin, -1])
            )
            # In columns, so that what is gathered lies together.
            windows = tf.gather(tf.transpose(samples), places)
            outputs = tf.matmul(taps, windows)  # (phases, size, periods)
            return tf.transpose(outputs, (2, 0, 1))

        return in_blocks(filter_block, periods, phases * width)

    def by_nodes():
        nodes = chebyshev_nodes(as_float64(down) / as_float64(up))
        taps = tf.reshape(filter_taps(nodes), tf.stack([-1, width]))
        last, _ = window_starts(groups - 1)
        right = tf.maximum(last + width - left - count, 0)
        padded = tf.pad(audio, [[left, right]])

        def filter_block(begin, end):
            starts, at_phase = window_starts(tf.range(begin, end))
            weights = interpolation_weights(at_phase, tf.size(nodes))
            windows = tf.gather(padded, starts[:, None] + tf.range(width))
            outputs = tf.reshape(
                tf.matmul(windows, taps, transpose_b=True),
                tf.stack([end - begin, -1, size]),
            )  # (groups, nodes, size)
            return tf.reduce_sum(outputs * weights[:, :, None], 1)

        return in_blocks(filter_block, groups, width)

    resampled = tf.cond(phases == 0, by_nodes, lambda: by_phase(phases))
    return resampled[:length]


def in_blocks(function, count, samples_each):
    """Joins the results of `function(begin, end)` over 0 to `count` in blocks.

    Args:
        function: function of two int64 scalars that returns a float32 tensor.
        count: int64 scalar, at least 1.
        samples_each: int64 scalar, samples in the windows of one.

    Returns:
        Float32 tensor `(outputs,)`.
    """
    at_once = tf.maximum(BLOCK // samples_each, 1)
    blocks = tf.cast(-(-count // at_once), tf.int32)

    def write_block(number, outputs):
        begin = tf.cast(number, tf.int64) * at_once
        block = function(begin, tf.minimum(begin + at_once, count))
        return number + 1, outputs.write(number, tf.reshape(block, (-1,)))

    _, outputs = tf.while_loop(
        lambda number, outputs: number < blocks,
        write_block,
        [
            0,
            tf.TensorArray(
                tf.float32, blocks, infer_shape=False, element_shape=(None,)
            ),
        ],
        parallel_iterations=1,
    )
    return outputs.concat()


def as_float64(integer):
    """Casts an integer tensor to float64."""
    return tf.cast(integer, tf.float64)


def chebyshev_nodes(ratio):
    """Returns `resampling.chebyshev_nodes`, as many as a ratio needs.

    Args:
        ratio: float64 scalar tensor, the input's rate by the output's.
    """
    least = tf.constant(resampling.node_ratios()[:-1], tf.float64)
    count = as_float64(1 + tf.math.count_nonzero(ratio < least))
    angles = (tf.range(count) + 0.5) * (np.pi / count)
    return (tf.cos(angles) + 1) / 2


def interpolation_weights(phases, count):
    """Returns `resampling.interpolation_weights`, float32 `(groups, count)`."""
    order = tf.range(as_float64(count))
    polynomials = tf.cos(tf.acos(2 * phases - 1)[:, None] * order)
    count = as_float64(count)
    transform = tf.cos(order[:, None] * (order + 0.5) * (np.pi / count))
    transform *= tf.where(order == 0, 1 / count, 2 / count)[:, None]
    return tf.cast(polynomials @ transform, tf.float32)
