"""The ends of requests of a load, and what they say of a server."""

import itertools
import math
import typing

import numpy as np

from audio_tf.ops.checks import check_sizes

GOOD = "good"  # Answered, with the scores that the clip is known to have.
REFUSED = "refused"  # The server said that it has too much to do.
FAILED = "failed"  # No answer in time, no connection, or another refusal.
WRONG = "wrong"  # Answered with other scores.
VERDICTS = (GOOD, REFUSED, FAILED, WRONG)


class Outcome(typing.NamedTuple):
    """One request and its end, with times in seconds from the beginning.

    Attributes:
        due_s: float, when it was to be sent.
        sent_s: float, when it was sent; later if all workers were waiting.
        done_s: float, when the answer or the error was there.
        verdict: str, one of `VERDICTS`.
    """

    due_s: float
    sent_s: float
    done_s: float
    verdict: str

    @property
    def latency_s(self):
        """Seconds that a user waited, infinite without a good answer."""
        return self.done_s - self.due_s if self.verdict == GOOD else math.inf


class Figures(typing.NamedTuple):
    """The latencies and the verdicts of one load.

    Percentiles are over all requests that were due, as a user sees them: one
    without a good answer counts as infinitely late.

    Attributes:
        offered_per_s: float, requests that were due, by the second.
        good_per_s: float, good answers by the second.
        p50_s: float, seconds from when a request was due to its answer,
            which half of the requests do not exceed.
        p90_s: float, likewise for nine of ten requests.
        p99_s: float, likewise for 99 of 100 requests.
        good_p99_s: float, likewise over the good answers alone; not a number
            if there are none.
        unsent_p99_s: float, seconds from when a request was due to when it
            was sent, which 99 of 100 requests do not exceed: that long the
            generator had no free worker, or no processor.
        good: int, requests with this verdict.
        refused: int, likewise.
        failed: int, likewise.
        wrong: int, likewise.
    """

    offered_per_s: float
    good_per_s: float
    p50_s: float
    p90_s: float
    p99_s: float
    good_p99_s: float
    unsent_p99_s: float
    good: int
    refused: int
    failed: int
    wrong: int

    def holds(self, limit_s):
        """Tells if 99 of 100 requests had a good answer within a limit."""
        return self.p99_s <= limit_s


def figures(outcomes, seconds):
    """Sums up the requests that were due within some seconds.

    Args:
        outcomes: list of `Outcome`, at least one.
        seconds: float, for how long requests were due.

    Returns:
        `Figures`.

    Raises:
        ValueError: if there are no outcomes.
    """
    check_sizes(outcomes=len(outcomes))
    latencies = [outcome.latency_s for outcome in outcomes]
    finite = [latency for latency in latencies if latency < math.inf]
    unsent = [outcome.sent_s - outcome.due_s for outcome in outcomes]
    verdicts = [outcome.verdict for outcome in outcomes]
    counts = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
    return Figures(
        len(outcomes) / seconds,
        counts[GOOD] / seconds,
        *(percentile(latencies, share) for share in (50, 90, 99)),
        percentile(finite, 99),
        percentile(unsent, 99),
        **counts,
    )


def row(name, rate_per_s, found, **more):
    """Returns a load's figures as a dict for JSON, infinite ones as `None`.

    Args:
        name: str, what was measured.
        rate_per_s: float, the requests a second that were meant.
        found: `Figures`.
        **more: further entries.
    """
    values = {
        key: value if math.isfinite(value) else None
        for key, value in found._asdict().items()
    }
    return {"name": name, "rate_per_s": rate_per_s, **values, **more}


def percentile(values, share):
    """Returns the least value that `share` of 100 values do not exceed."""
    if not values:
        return math.nan
    # Interpolation between two values would make infinity of a finite one.
    return float(np.percentile(values, share, method="inverted_cdf"))


def until_it_breaks(
    measure, first_per_s, limit_s=1.0, factor=1.5, halvings=2, most=20
):
    """Raises the load until the server no longer holds it.

    The rate grows by a factor until it is too high; then the range between
    the last that was held and the first that was not is halved; at last comes
    twice the rate that broke it, for what overload does.

    Args:
        measure: function of a rate in requests a second, which returns
            `Figures`.
        first_per_s: float, the first rate.
        limit_s: float, the seconds within which 99 of 100 requests must have
            a good answer.
        factor: float above 1, from one rate to the next.
        halvings: int, the rates between.
        most: int, the rates that are tried at most before the range is known.

    Yields:
        Triple of the rate, its `Figures`, and whether it was held.

    Raises:
        ValueError: if `factor` is not above 1.
    """
    if not factor > 1.0:
        raise ValueError(f"`factor` must be above 1. Received: factor={factor}")

    def tried(rate_per_s):
        found = measure(rate_per_s)
        return rate_per_s, found, found.holds(limit_s)

    held, broken = 0.0, None
    for power in range(most):
        step = tried(first_per_s * factor**power)
        yield step
        if not step[2]:
            broken = step[0]
            break
        held = step[0]
    if broken is None:
        return
    for _ in range(halvings):
        step = tried((held + broken) / 2.0)
        yield step
        held, broken = (step[0], broken) if step[2] else (held, step[0])
    yield tried(2.0 * broken)


def by_second(outcomes):
    """Counts the verdicts of the requests that were due in each second.

    Returns:
        List of dicts of counts by verdict, one for each second from the first
        on, and the median latency of its good answers under `p50_s`.
    """
    seconds = itertools.groupby(
        sorted(outcomes), key=lambda outcome: int(outcome.due_s)
    )
    found = {second: list(group) for second, group in seconds}
    rows = []
    for second in range(max(found, default=-1) + 1):
        group = found.get(second, [])
        verdicts = [outcome.verdict for outcome in group]
        row = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
        good = [o.latency_s for o in group if o.verdict == GOOD]
        rows.append({**row, "p50_s": percentile(good, 50)})
    return rows
