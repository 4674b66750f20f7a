"""Change of the sample rate: the filter, and its use on the host.

The filter is a sinc under a Kaiser window (J. F. Kaiser, "Nonrecursive
digital filter design using the I0-sinh window function", 1974). With all
frequencies as shares of the lower one of the two Nyquist frequencies, and all
times in samples of the lower one of the two rates:

- beta = 0.1102 (A - 8.7) for a stop band A dB down, and a ripple of 10^(-A/20)
  in the pass band, too;
- the transition is (A - 7.95) / (14.36 M) wide, from 2.285 pi in his formula,
  for a window of M samples to each side;
- it lies around the cut-off, C / M, where C zero crossings of the sinc fill
  the window. As C is an integer, the last crossing is at the window's end: the
  taps run out into 0, without a step.

M = 70, C = 67 and A = 90 give a transition from 0.916 to 0.998. Measured: 0.000
dB up to 0.91, -0.006 dB at 0.92, -0.16 dB at 0.93, -48 dB at 0.99, and -90 dB
or less from 1.0 on. Nothing is folded or mirrored, and the bands of a mel
spectrogram are libsoxr's in high quality (0.913 to 1.0) to 0.5 dB. The
filter is symmetric about the output, hence of linear phase and without delay.
Before and behind a clip is silence.

A rational ratio `up / down` needs `up` phases of the filter. Neighbouring
outputs form groups, which share a window of input: a matrix product serves
the groups of one phase. Where the groups have many phases, as for 999,983 to
16,000 Hz, their outputs are interpolated instead, see `Plan`.

Products are summed in float64, in whatever order a processor likes, and rounded
to float32 once. All but the rarest of sums hide the order then: samples are the
same to the last bit on every machine, as the marks by which clips are known
again must be.
"""

import dataclasses
import functools
import math

import numpy as np

from audio_tf.ops.checks import is_number

REACH = 70
CROSSINGS = 67
ATTENUATION_DB = 90
BETA = 0.1102 * (ATTENUATION_DB - 8.7)

# Another resampler moves the metrics, so the name is part of the provenance
# of a model and of the key of cached audio.
RESAMPLER = (
    f"sinc of {CROSSINGS} crossings in {REACH} samples to each side, "
    f"Kaiser {BETA:.3f}"
)
# Other sums have other last bits: they are in the key of cached audio alone.
SUMS = "summed in float64"

# Groups of so many outputs, at least and at most. Wide ones serve few windows
# that overlap little, but multiply by more taps that are 0.
MIN_GROUP = 32
MAX_GROUP = 64
# With more phases of groups, outputs are interpolated.
MAX_PHASES = 10
INTERPOLATED_GROUP = 16
# Error of the interpolation, of full scale.
TOLERANCE = 1e-7
# Multiplications of a matrix product: BLAS keeps so small a one to the thread
# that calls it, where files are decoded by several, and its input to the cache.
PRODUCT = 2**19


@dataclasses.dataclass(frozen=True)
class Plan:
    """A grouping of the outputs for one ratio of rates.

    Group j holds the outputs from j * `size` on. The first of them lies
    between the samples i and i + 1 of the input, at i + f with 0 <= f < 1:
    the phase f is that of group j - `phases` again. Its window begins `left`
    samples before i.

    If `phases` is 0 there are too many of them. The group is computed at
    `len(nodes)` phases, the Chebyshev nodes, and its outputs are those of the
    polynomial in f through them: the input has no frequency above its own
    Nyquist frequency, so that few nodes will do.
    """

    up: int
    down: int
    size: int
    phases: int

    @property
    def left(self):
        """Returns how many samples a window begins before its sample i."""
        return -(-REACH * max(self.up, self.down) // self.up)

    @property
    def width(self):
        """Returns the number of samples in a window."""
        right = (self.size - 1) * self.down + REACH * max(self.up, self.down)
        return self.left + right // self.up + 2

    @property
    def nodes(self):
        """Returns the phases f that there are taps for, float64 `(nodes,)`."""
        if self.phases:
            places = np.arange(self.phases) * (self.size * self.down)
            return places % self.up / self.up
        return chebyshev_nodes(num_nodes(self.down / self.up))


def grouping(up):
    """Returns the outputs in a group and the number of phases; see `Plan`."""
    if up <= MIN_GROUP:
        return -(-MIN_GROUP // up) * up, 1
    size = max(d for d in range(1, MAX_GROUP + 1) if up % d == 0)
    if up // size > MAX_PHASES:
        return INTERPOLATED_GROUP, 0
    return size, up // size


def chebyshev_nodes(count):
    """Returns nodes of the interpolation over 0 to 1, float64 `(count,)`."""
    angles = (np.arange(count) + 0.5) * (np.pi / count)
    return (np.cos(angles) + 1) / 2


def node_ratios():
    """Lists the ratios of rates from which on 1, 2, 3, ... nodes suffice.

    A ratio is the input's rate by the output's.

    The polynomial through n Chebyshev nodes misses a function over 0 to 1 by
    its n-th derivative / (n! 2^(2n - 1)) at most. What has passed the filter
    has no frequency above pi / ratio, and no derivative above its n-th power.

    Returns:
        List of float, descending; the last one is below 1,
        and an upsampled clip has no frequency above pi either.
    """
    ratios = []
    while not ratios or ratios[-1] > 1:
        n = len(ratios) + 1
        factor = TOLERANCE * math.factorial(n) * 2 ** (2 * n - 1)
        ratios.append(math.pi / factor ** (1 / n))
    return ratios


def num_nodes(ratio):
    """Returns how many nodes a ratio of rates needs; see `node_ratios`."""
    return 1 + sum(ratio < least for least in node_ratios()[:-1])


def interpolation_weights(phases, count):
    """Returns the shares of the nodes in the outputs at some phases.

    Args:
        phases: float64 array `(groups,)`, from 0 to 1.
        count: int, the number of nodes.

    Returns:
        Float64 array `(groups, count)`.
    """
    order = np.arange(count)
    polynomials = np.cos(np.arccos(2 * phases - 1)[:, None] * order)
    return polynomials @ node_transform(count)


def node_transform(count):
    """Returns the matrix from values at nodes to Chebyshev coefficients."""
    order = np.arange(count)
    cosines = np.cos(order[:, None] * (order + 0.5) * (np.pi / count))
    return cosines * np.where(order == 0, 1, 2)[:, None] / count


def kernel(time):
    """Returns the filter's impulse response, whose integral is 1.

    Args:
        time: float64 array, in samples of the lower rate.
    """
    share = np.minimum(np.abs(time) / REACH, 1)
    return np.sinc(CROSSINGS * share) * np.polyval(window(), 1 - share**2)


@functools.lru_cache(maxsize=1)
def window():
    """Returns the Kaiser window as a polynomial in 1 - (time / REACH)^2.

    It is made such that the integral of `kernel` is 1. I0 of a square root is
    a power series: degree 9 gives it to 4e-9 of its peak.

    Returns:
        Coefficients for `polyval`, the highest power first.
    """
    # Slow to import, and needed for this alone.
    from scipy.special import i0

    # The trapezoidal rule is exact here to 1e-15 or so: nothing of the
    # spectrum reaches as far as the inverse of its step.
    share = np.arange(-1, 1, 2**-14)
    exact = i0(BETA * np.sqrt(1 - share**2))
    integral = 2 * REACH * np.mean(np.sinc(CROSSINGS * share) * exact)
    fitted = np.polynomial.Chebyshev.interpolate(
        lambda square: i0(BETA * np.sqrt(square)) / integral,
        9,
        domain=[0, 1],
    )
    return fitted.convert(kind=np.polynomial.Polynomial).coef[::-1].tolist()


# Rates are few, but a hostile corpus has many and each with 20 MB of taps.
@functools.lru_cache(maxsize=8)
def plan_with_taps(up, down):
    """Returns the `Plan` of a ratio and its taps, `(nodes, width, size)`.

    The taps are float64.
    """
    plan = Plan(up, down, *grouping(up))
    scale = min(1.0, up / down)
    outputs = np.arange(plan.size) * (down / up) + plan.left
    offsets = outputs - np.arange(plan.width)[:, None]
    taps = [scale * kernel(scale * (offsets + node)) for node in plan.nodes]
    return plan, np.stack(taps)


def check_hz(**rates):
    """Raises a `ValueError` that names the first that is no whole Hz."""
    for name, rate in rates.items():
        if not (is_number(rate) and 1 <= rate < math.inf and rate % 1 == 0):
            raise ValueError(
                f"`{name}` must be whole Hz, at least 1. "
                f"Received: {name}={rate!r}"
            )


def resample(audio, rate_hz, target_rate_hz):
    """Changes the sample rate.

    Args:
        audio: float array `(samples,)`.
        rate_hz: int, its rate.
        target_rate_hz: int, the rate wanted.

    Returns:
        Float32 array `(ceil(samples * target_rate_hz / rate_hz),)`.

    Raises:
        TypeError: if the samples are integers, whose full scale is unknown,
            or complex.
        ValueError: if there is another axis than that of samples, or a rate
            is no whole number of Hz.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import audio
        >>> audio.resample(np.zeros(44_100, "float32"), 44_100, 16_000).shape
        (16000,)
    """
    audio = np.asarray(audio)
    if audio.dtype.kind in "biuc":
        raise TypeError(f"`audio` must be floats. Received: {audio.dtype}")
    if audio.ndim != 1:
        raise ValueError(
            "`audio` must be of shape (samples,), one channel. "
            f"Received: shape={audio.shape}"
        )
    check_hz(rate_hz=rate_hz, target_rate_hz=target_rate_hz)
    rate_hz, target_rate_hz = int(rate_hz), int(target_rate_hz)
    if rate_hz == target_rate_hz:
        return audio.astype("float32", copy=False)
    divisor = math.gcd(rate_hz, target_rate_hz)
    up, down = target_rate_hz // divisor, rate_hz // divisor
    length = -(-len(audio) * up // down)
    if not length:
        return np.zeros(0, "float32")
    plan, taps = plan_with_taps(up, down)
    groups = -(-length // plan.size)
    # A short clip has fewer groups than there are phases.
    phases = min(plan.phases, groups)
    groups += -groups % max(phases, 1)
    starts, rest = np.divmod(np.arange(groups) * (plan.size * down), up)
    right = max(starts[-1] + plan.width - plan.left - len(audio), 0)
    padded = np.pad(np.asarray(audio, "float32"), (plan.left, right))
    windows = np.lib.stride_tricks.sliding_window_view(padded, plan.width)

    at_once = max(PRODUCT // (plan.width * plan.size), 4) * max(phases, 1)
    outputs = np.empty((groups, plan.size), "float32")
    for begin in range(0, groups, at_once):
        block = slice(begin, begin + at_once)
        samples = windows[starts[block]].astype("float64")  # (groups, width)
        if phases:
            samples = samples.reshape(-1, phases, plan.width).swapaxes(0, 1)
            by_phase = np.matmul(samples, taps[:phases]).swapaxes(0, 1)
            outputs[block] = by_phase.reshape(-1, plan.size)
        else:
            weights = interpolation_weights(rest[block] / up, len(taps))
            at_nodes = np.matmul(samples, taps)  # (nodes, groups, size)
            outputs[block] = np.einsum("ngs,gn->gs", at_nodes, weights)
    return outputs.reshape(-1)[:length]
