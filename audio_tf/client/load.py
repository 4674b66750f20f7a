"""Measures a server under load whose requests do not wait for its answers.

A client that sends its next request when the last is answered slows down with
the server, and never sees what users see who come at their own times. Here
the times are drawn before the first request, and latency is counted from the
time at which a request was due, whether or not it could be sent then.
"""

import asyncio
import concurrent.futures
import itertools
import math
import threading
import time
import typing

import numpy as np

from audio_tf.client.address import ServerError
from audio_tf.client.query import SIGNATURE, Client
from audio_tf.client.transport import BUSY
from audio_tf.ops.checks import check_sizes

GOOD = "good"  # Answered, with the scores that the clip is known to have.
REFUSED = "refused"  # The server said that it has too much to do.
FAILED = "failed"  # No answer in time, no connection, or another refusal.
WRONG = "wrong"  # Answered with other scores.
VERDICTS = (GOOD, REFUSED, FAILED, WRONG)

TOLERANCE = 1e-5


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


def poisson(rate_per_s, seconds, rng, begin_s=0.0):
    """Draws the times of independent arrivals.

    Args:
        rate_per_s: float, requests a second on average.
        seconds: float, how long they come.
        rng: `numpy.random.Generator`.
        begin_s: float, when the first may come, in seconds.

    Returns:
        Float array of times in seconds, in order.

    Raises:
        ValueError: if a rate or a duration is not positive and finite.
    """
    for name, value in (("rate_per_s", rate_per_s), ("seconds", seconds)):
        if not 0.0 < value < math.inf:
            raise ValueError(
                f"`{name}` must be positive and finite. "
                f"Received: {name}={value}"
            )
    # Given their number, the arrivals of a Poisson process are uniform.
    count = rng.poisson(rate_per_s * seconds)
    return begin_s + np.sort(rng.uniform(0.0, seconds, count))


def send_at(due_s, send, workers=256, clock=time, stop=None):
    """Sends requests when they are due.

    Args:
        due_s: sequence of float, times in seconds from now, in order.
        send: function of the number of a request, which sends it and returns
            one of `VERDICTS`; it is called in several threads at a time.
        workers: int, the requests that may be waiting for an answer at a
            time. One that is due while all wait is sent late, and its latency
            counts from when it was due.
        clock: tells the time and waits, as the module `time` does.
        stop: `threading.Event` after which none is sent any more, or `None`.

    Returns:
        List of `Outcome`, one for each time; for each that was sent, if there
        is a `stop`.

    Raises:
        Exception: what `send` raised first; no further request is begun then.
    """
    check_sizes(workers=workers)
    outcomes = [None] * len(due_s)
    numbers = iter(range(len(due_s)))
    lock, stop = threading.Lock(), stop or threading.Event()
    begin = clock.monotonic()

    def work():
        while not stop.is_set():
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            due = float(due_s[number])
            early = due - (clock.monotonic() - begin)
            if early > 0.0:
                clock.sleep(early)
            if stop.is_set():
                return
            sent = clock.monotonic() - begin
            try:
                verdict = send(number)
            except BaseException:
                stop.set()
                raise
            done = clock.monotonic() - begin
            outcomes[number] = Outcome(due, sent, done, verdict)

    workers = max(1, min(workers, len(due_s)))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(work) for _ in range(workers)]
        for future in concurrent.futures.as_completed(running):
            future.result()
    return [outcome for outcome in outcomes if outcome]


class Sender:
    """Sends clips whose scores are known, from any number of threads.

    Args:
        url: str, of the server, as `Client` takes it.
        clips: list of bytes, the contents of WAV files; request `n` has the
            `n`-th of them, and begins again after the last.
        known: list with a list for each clip of the arrays `(classes,)` that
            are right answers, those of each version that may answer; `None`
            to ask the server now, when it has nothing else to do.
        tolerance: float, how far a right answer may be off.
        **kwargs: further arguments of `Client`.

    Attributes:
        matched: dict by the number of a request of the place, in the list of
            its clip, of the answer that came.
        errors: dict by text, without what is different each time, of how many
            requests failed with it.

    Raises:
        ServerError: if `known` is `None` and the server does not answer.
    """

    def __init__(self, url, clips, known=None, tolerance=TOLERANCE, **kwargs):
        check_sizes(clips=len(clips))
        self.url = url
        self.clips = clips
        self.kwargs = kwargs
        self.tolerance = tolerance
        self.matched = {}
        self.errors = {}
        self.lock = threading.Lock()
        self.own = threading.local()
        self.clients = []
        self.known = known or [[self.ask(clip)] for clip in clips]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Ends the connections."""
        for client in self.clients:
            client.close()

    def client(self):
        """Returns the `Client` of this thread."""
        client = self.own.__dict__.get("client")
        if client is None:
            client = self.own.client = Client(self.url, **self.kwargs)
            with self.lock:
                self.clients.append(client)
        return client

    def ask(self, clip):
        """Returns the scores `(classes,)` of one clip.

        Raises:
            ServerError: if there is no answer, or the clip is refused.
        """
        return self.scores_of(self.client().outcomes([clip], SIGNATURE))

    def scores_of(self, outcomes):
        """Returns the scores of the one clip that `Client.outcomes` is of."""
        ((scores, error),) = outcomes
        if scores is None:
            raise ServerError(f"{self.url}: {error}")
        return scores

    def __call__(self, number):
        """Sends one request and returns one of `VERDICTS`."""
        try:
            scores = self.ask(self.clips[number % len(self.clips)])
        except ServerError as error:
            return self.without_scores(error)
        return self.verdict(number, scores)

    def send_at(self, due_s, workers=256):
        """Sends requests when they are due, as the function `send_at` does.

        By REST, and without retries, one thread sends them all, whose bytes
        were made before: threads that each make their own take a multiple of
        a processor's time, and are late where the server is not.

        Args:
            due_s: sequence of float, times in seconds from now, in order.
            workers: int, the requests that may be waiting for an answer at a
                time.

        Returns:
            List of `Outcome`, one for each time.

        Raises:
            Exception: the first that is no `ServerError`; no further request
                is begun then.
        """
        client = self.client()
        if client.retries or client.transport.prepare is None:
            return send_at(due_s, self, workers)
        check_sizes(workers=workers)
        return asyncio.run(self.send_by_one_thread(due_s, workers))

    async def send_by_one_thread(self, due_s, workers):
        """Sends requests by one thread; see the method `send_at`."""
        client = self.client()
        requests = [
            client.transport.prepare(SIGNATURE, {"audio_bytes": [clip]})
            for clip in self.clips
        ]
        clock = asyncio.get_running_loop()
        free = asyncio.Semaphore(workers)
        begin = clock.time()

        async def send(number, due):
            async with free:
                sent = clock.time() - begin
                numbers = client.numbers(1)
                try:
                    received = await client.transport.exchange(
                        requests[number % len(requests)],
                        client.timeout_s,
                        numbers,
                    )
                    outputs = client.transport.read(received, numbers)
                    scores = self.scores_of(client.judged(outputs, 1))
                except ServerError as error:
                    verdict = self.without_scores(error)
                else:
                    verdict = self.verdict(number, scores)
                return Outcome(due, sent, clock.time() - begin, verdict)

        sending = []
        try:
            async with asyncio.TaskGroup() as group:
                for number, due in enumerate(map(float, due_s)):
                    early = due - (clock.time() - begin)
                    if early > 0.0:
                        await asyncio.sleep(early)
                    sending.append(group.create_task(send(number, due)))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in sending]

    def without_scores(self, error):
        """Returns the verdict of a request that failed with a `ServerError`."""
        with self.lock:
            text = str(error).removeprefix(self.url)
            self.errors[text] = self.errors.get(text, 0) + 1
        return REFUSED if error.status in BUSY else FAILED

    def verdict(self, number, scores):
        """Returns the verdict of a request that was answered with scores."""
        place = number % len(self.clips)
        for answer, right in enumerate(self.known[place]):
            if (
                scores.shape == right.shape
                and np.abs(scores - right).max() <= self.tolerance
            ):
                with self.lock:
                    self.matched[number] = answer
                return GOOD
        return WRONG


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
