"""Measures a server under load whose requests do not wait for its answers.

A client that sends its next request when the last is answered slows down with
the server, and never sees what users see who come at their own times. Here
the times are drawn before the first request, and latency is counted from the
time at which a request was due, whether or not it could be sent then.
"""

import asyncio
import concurrent.futures
import math
import threading
import time

import numpy as np

from audio_tf.client.address import ServerError
from audio_tf.client.load_figures import FAILED, GOOD, REFUSED, WRONG, Outcome
from audio_tf.client.query import SIGNATURE, Client
from audio_tf.client.transport import BUSY
from audio_tf.ops.checks import check_sizes

TOLERANCE = 1e-5


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
        self.tolerance = tolerance
        self.matched = {}
        self.errors = {}
        self.lock = threading.Lock()
        self.client = Client(url, **kwargs)
        self.known = known or [[self.ask(clip)] for clip in clips]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Ends the connections."""
        self.client.close()

    def ask(self, clip):
        """Returns the scores `(classes,)` of one clip.

        Raises:
            ServerError: if there is no answer, or the clip is refused.
        """
        return self.scores_of(self.client.outcomes([clip], SIGNATURE))

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
        client = self.client
        if client.retries or client.transport.prepare is None:
            return send_at(due_s, self, workers)
        check_sizes(workers=workers)
        return asyncio.run(self.send_by_one_thread(due_s, workers))

    async def send_by_one_thread(self, due_s, workers):
        """Sends requests by one thread; see the method `send_at`."""
        client = self.client
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
