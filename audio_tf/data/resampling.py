"""Change of the sample rate: one filter, on the host and in the graph."""

import functools
import math

import numpy as np
import scipy.signal
import tensorflow as tf

# Another resampler moves the metrics, so the name is part of the provenance
# of a model and of the key of cached audio.
RESAMPLER = "scipy.signal.resample_poly, Kaiser 5.0"

# The filter is a sinc of so many zero crossings to each side, under a Kaiser
# window: what `scipy.signal.resample_poly` has by default.
CROSSINGS = 10
BETA = 5.0

# In the graph: taps that are in memory at once, and the least number of
# outputs that share a window.
MAX_TAPS = 2**20
MIN_GROUP = 4


@functools.lru_cache(maxsize=64)
def resampling_filter(up, down):
    """The low-pass FIR that `scipy.signal.resample_poly` has by default."""
    widest = max(up, down)
    taps = scipy.signal.firwin(
        2 * CROSSINGS * widest + 1, 1.0 / widest, window=("kaiser", BETA)
    )
    return taps.astype("float32")


def resample(audio, rate_hz, target_rate_hz):
    """Changes the rate by a polyphase filter, the one resampler we have.

    Args:
        audio: float32 array `(samples,)`.
        rate_hz: int, its rate.
        target_rate_hz: int, the rate wanted.

    Returns:
        Float32 array `(ceil(samples * target_rate_hz / rate_hz),)`.
    """
    if rate_hz == target_rate_hz:
        return audio
    divisor = math.gcd(rate_hz, target_rate_hz)
    up, down = target_rate_hz // divisor, rate_hz // divisor
    return scipy.signal.resample_poly(
        audio, up, down, window=resampling_filter(up, down)
    ).astype("float32", copy=False)


@tf.autograph.experimental.do_not_convert
def resample_in_graph(audio, rate_hz, target_rate_hz):
    """`resample` by core ops alone, for a rate known when the graph runs.

    The taps are computed as they are needed, some 10 MB of them at once
    whatever the rates: a filter for 999,999 Hz has 20 million.

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
        lambda: polyphase(audio, rate_hz, target_rate_hz),
    )
    return tf.ensure_shape(resampled, (None,))


def polyphase(audio, rate_hz, target_rate_hz):
    """`resample_in_graph` for audio that is not empty, at another rate.

    Output m is the sum over k of tap(m * down - k * up) * audio[k]. The taps
    recur after `period` outputs, while the input goes on by `advance` samples.
    `size` neighbouring outputs are a group and share a window of `width`
    samples: one matrix product serves the group in all the periods.
    """
    count = tf.size(audio, tf.int64)
    rate_hz = tf.cast(rate_hz, tf.int64)
    # The divisors of the target are known: no loop for the gcd.
    divisors = tf.constant(divisors_of(target_rate_hz), tf.int64)
    divisor = tf.reduce_max(tf.where(rate_hz % divisors == 0, divisors, 1))
    up, down = target_rate_hz // divisor, rate_hz // divisor
    widest = tf.maximum(up, down)
    reach = CROSSINGS * widest
    length = -(-count * up // down)

    # So many repeats that no window is wider than a period: a period of one
    # output, as for 48 to 16 kHz, could not form groups.
    repeats = -(-2 * (2 * reach // up + 1) // down)
    period, advance = repeats * up, repeats * down
    periods = -(-length // period)
    # Wide groups serve few windows that overlap little, but compute taps that
    # are zero: not worth it where few periods use them.
    size = tf.clip_by_value(periods, MIN_GROUP, 2 * reach // down)
    width = ((size - 1) * down + 2 * reach) // up + 1
    groups = -(-tf.minimum(period, length) // size)

    left = reach // up
    right = (periods + 1) * advance - left - count
    rows = tf.reshape(
        tf.pad(audio, [[left, right]]), tf.stack([periods + 1, advance])
    )
    rows = tf.concat([rows[:-1], rows[1:, :width]], axis=1)
    columns = tf.transpose(rows)  # (advance + width, periods)
    offsets = tf.cast(
        tf.range(size)[:, None] * down - tf.range(width) * up, tf.int32
    )

    def filter_groups(start, stop):
        """Outputs `(stop - start, size, periods)` of some of the groups."""
        place = tf.range(start, stop) * (size * down)
        first = -((reach - place) // up)  # The first sample of the window.
        shift = tf.cast(place - first * up, tf.int32)
        taps = prototype(shift[:, None, None] + offsets, up, widest)
        windows = tf.gather(
            columns, (first + left)[:, None] + tf.range(width)
        )  # (groups, width, periods)
        return tf.matmul(taps, windows)

    at_once = tf.maximum(MAX_TAPS // (size * width), 1)
    blocks = -(-groups // at_once)
    _, outputs = tf.while_loop(
        lambda block, outputs: block < blocks,
        lambda block, outputs: (
            block + 1,
            outputs.write(
                tf.cast(block, tf.int32),
                filter_groups(
                    block * at_once, tf.minimum((block + 1) * at_once, groups)
                ),
            ),
        ),
        [
            tf.constant(0, tf.int64),
            tf.TensorArray(
                tf.float32,
                tf.cast(blocks, tf.int32),
                infer_shape=False,
                element_shape=(None, None, None),
            ),
        ],
        parallel_iterations=1,
    )
    phases = tf.reshape(outputs.concat(), tf.stack([groups * size, periods]))
    return tf.reshape(tf.transpose(phases[:period]), (-1,))[:length]


def divisors_of(number):
    return [d for d in range(1, number + 1) if number % d == 0]


def prototype(offset, up, widest):
    """Taps of `resampling_filter` times `up`, as float32.

    Args:
        offset: int32 tensor, places from the middle of the filter; beyond its
            ends the taps are 0.
        up: int64 scalar.
        widest: int64 scalar, the larger one of `up` and `down`.
    """
    reach = tf.cast(CROSSINGS * widest, tf.int32)
    # At its ends the sinc is 0, so that what is cut off needs no mask.
    offset = tf.cast(tf.clip_by_value(offset, -reach, reach), tf.float32)
    share = tf.abs(offset) / tf.cast(reach, tf.float32)
    angle = tf.maximum(share * (math.pi * CROSSINGS), 1e-6)  # Not 0 / 0.
    window = tf.math.bessel_i0(BETA * tf.sqrt(1.0 - share * share))
    widest = tf.cast(widest, tf.float64)
    total = tf.math.polyval(taps_total(), 1.0 / tf.square(widest)) * widest
    scale = tf.cast(tf.cast(up, tf.float64) / total, tf.float32)
    return tf.sin(angle) / angle * (window * scale)


@functools.lru_cache(maxsize=1)
def taps_total():
    """Coefficients, in 1 / widest**2, of the sum of the taps over `widest`.

    The sum approaches an integral in even powers (Euler and Maclaurin): a fit
    to some filters gives all of them, without the taps, to 1e-11.
    """
    widths = np.array([2, 3, 4, 6, 8, 16, 64, 500])
    sums = []
    for widest in widths:
        share = np.arange(-CROSSINGS * widest, CROSSINGS * widest + 1) / (
            CROSSINGS * widest
        )
        taps = np.sinc(CROSSINGS * share) * np.i0(
            BETA * np.sqrt(1.0 - share**2)
        )
        sums.append(taps.sum() / widest)
    return list(np.polyfit(1.0 / widths**2, sums, 4))
