"""Load whose requests do not wait for answers, against queues known exactly."""

import asyncio
import math
import ssl
import threading
import time

import numpy as np
import pytest

from audio_tf.client import address, connections, load, load_figures
from audio_tf.client import rest as rest_transport
from audio_tf.client.load_figures import FAILED, GOOD, REFUSED, WRONG, Outcome
from serving import rest_server, served


class Clock:
    """Time that passes where somebody sleeps, and nowhere else."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        assert seconds > 0
        self.now += seconds


def waits(due_s, service_s):
    """Latencies of a queue before one server, by Lindley's recursion."""
    wait, latencies = 0.0, []
    for number, service in enumerate(service_s):
        if number:
            gap = due_s[number] - due_s[number - 1]
            wait = max(0.0, wait + service_s[number - 1] - gap)
        latencies.append(wait + service)
    return latencies


def test_poisson_arrivals_have_its_mean_and_its_gaps(rng):
    times = load.poisson(50.0, 400.0, rng, begin_s=3.0)
    gaps = np.diff(times)
    assert times[0] >= 3.0 and times[-1] <= 403.0 and (gaps >= 0.0).all()
    # Five standard deviations of 20,000 events.
    assert abs(len(times) - 20_000) < 5 * math.sqrt(20_000)
    # Exponential gaps: their deviation is their mean, e^-1 are above it.
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)
    assert (gaps > gaps.mean()).mean() == pytest.approx(1 / math.e, abs=0.02)


@pytest.mark.parametrize("rate, seconds", [(0.0, 1.0), (1.0, math.inf)])
def test_a_rate_or_a_duration_out_of_range_is_named(rate, seconds, rng):
    with pytest.raises(ValueError, match="must be positive.*Received"):
        load.poisson(rate, seconds, rng)


def test_latency_counts_from_when_a_request_was_due(rng):
    """One worker before a server of one is a queue: nothing is omitted."""
    due = load.poisson(9.0, 30.0, rng)
    service = rng.exponential(0.1, len(due))
    clock = Clock()

    def send(number):
        clock.sleep(service[number])
        return GOOD

    outcomes = load.send_at(due, send, workers=1, clock=clock)
    found = [outcome.latency_s for outcome in outcomes]
    np.testing.assert_allclose(found, waits(due, service), atol=1e-9)
    assert max(found) > 2 * max(service)
    figures = load_figures.figures(outcomes, 30.0)
    assert (
        figures.good == len(due)
        and figures.p99_s == sorted(found)[math.ceil(0.99 * len(found)) - 1]
    )


def test_requests_do_not_wait_for_answers():
    """All are under way before the first is answered."""
    together = threading.Barrier(5)

    def send(number):
        together.wait(timeout=30.0)
        return GOOD

    outcomes = load.send_at([0.0] * 5, send, workers=5)
    assert [outcome.verdict for outcome in outcomes] == [GOOD] * 5


def test_an_error_of_ours_ends_the_load():
    sent = []

    def send(number):
        sent.append(number)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        load.send_at(np.zeros(1000), send, workers=2)
    assert len(sent) < 1000


def test_a_load_can_be_stopped():
    """Also while a worker waits for the time of the next request."""
    clock, stop = Clock(), threading.Event()
    sleep = clock.sleep

    def sleep_until_stopped(seconds):
        sleep(seconds)
        if clock.now >= 102.0:
            stop.set()

    clock.sleep = sleep_until_stopped
    outcomes = load.send_at(
        np.arange(9.0), lambda number: GOOD, workers=1, clock=clock, stop=stop
    )
    assert [outcome.due_s for outcome in outcomes] == [0.0, 1.0]


def outcome(latency_s, verdict=GOOD, due_s=0.0):
    return Outcome(due_s, due_s + 0.25, due_s + latency_s, verdict)


def test_requests_without_a_good_answer_are_infinitely_late():
    good = [outcome(0.5 + n) for n in range(8)]
    figures = load_figures.figures(
        [*good, outcome(0.1, REFUSED), outcome(0.1, WRONG)], 4.0
    )
    assert (figures.offered_per_s, figures.good_per_s) == (2.5, 2.0)
    assert (figures.p50_s, figures.p90_s) == (4.5, math.inf)
    assert (figures.p99_s, figures.good_p99_s) == (math.inf, 7.5)
    assert (figures.refused, figures.failed, figures.wrong) == (1, 0, 1)
    assert figures.unsent_p99_s == 0.25
    assert not figures.holds(100.0)
    assert load_figures.figures(good, 4.0).holds(7.5)
    assert not load_figures.figures(good, 4.0).holds(7.4)
    lost = load_figures.figures([outcome(1.0, FAILED)], 1.0)
    assert lost.p50_s == math.inf and math.isnan(lost.good_p99_s)
    with pytest.raises(ValueError, match="outcomes=0"):
        load_figures.figures([], 1.0)


def test_the_load_grows_until_it_breaks_and_the_edge_is_narrowed():
    """A server that holds 30 requests a second, and no more."""

    def measure(rate_per_s):
        verdict = GOOD if rate_per_s <= 30.0 else REFUSED
        return load_figures.figures([outcome(0.1, verdict)], 1.0)

    steps = list(load_figures.until_it_breaks(measure, 8.0, 1.0, factor=2.0))
    rates = [rate for rate, _, _ in steps]
    assert rates == [8.0, 16.0, 32.0, 24.0, 28.0, 64.0]
    assert [held for *_, held in steps] == [rate <= 30.0 for rate in rates]
    steps = load_figures.until_it_breaks(measure, 1.0, 1.0, factor=2.0, most=3)
    assert [rate for rate, _, _ in steps] == [1.0, 2.0, 4.0]
    with pytest.raises(ValueError, match="factor=1.0"):
        next(load_figures.until_it_breaks(measure, 1.0, factor=1.0))


def test_seconds_without_requests_are_rows_too():
    rows = load_figures.by_second(
        [
            outcome(0.5, GOOD, 2.5),
            outcome(0.1, REFUSED, 0.75),
            outcome(1.5, GOOD, 2.0),
        ]
    )
    assert [row[REFUSED] for row in rows] == [1, 0, 0]
    assert [row[GOOD] for row in rows] == [0, 0, 2]
    assert math.isnan(rows[1]["p50_s"]) and rows[2]["p50_s"] == 0.5


@pytest.fixture
def rest():
    server = rest_server.RestServer(served.Constant())
    yield server
    server.stop()


RIGHT = np.full(3, 0.25, "float32")
FULL = b'{"error": "full"}'


def one_by_one(send, numbers):
    """Verdicts of requests that are sent by threads, as `__call__` does."""
    return [send(number) for number in numbers]


def by_one_thread(send, numbers):
    """The same, sent by one thread for all; numbers begin at 0."""
    outcomes = send.send_at([0.0] * len(numbers), workers=1)
    assert [outcome.due_s for outcome in outcomes] == [0.0] * len(numbers)
    return [outcome.verdict for outcome in outcomes]


@pytest.mark.parametrize("sent", [one_by_one, by_one_thread])
def test_answers_are_judged_by_scores_that_are_known(sent, rest):
    with load.Sender(
        rest.url, [b"a", b"b"], [[RIGHT], [RIGHT + 1, RIGHT]], retries=0
    ) as send:
        rest.answers = [(503, b"full"), (400, b"no"), (200, b"{}")]
        assert sent(send, range(3)) == [REFUSED, FAILED, FAILED]
        assert sum(send.errors.values()) == 3
        assert any("status 503, full" in text for text in send.errors)
        assert sent(send, range(2)) == [GOOD, GOOD]
        assert send.matched == {0: 0, 1: 1}
        off = b'{"outputs": [[0.25, 0.25, 0.26]]}'
        fewer = b'{"outputs": [[0.25, 0.25]]}'
        rest.answers = [(200, off)]
        assert sent(send, range(1)) == [WRONG]
        send.client.num_classes = None
        rest.answers = [(200, fewer)]
        assert sent(send, range(1)) == [WRONG]


ANSWER = b'{"outputs": [[0.25, 0.25, 0.25]]}'
HALF = {"Content-Length": str(len(ANSWER) + 9)}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((429, FULL), "status 429, full"),
        ((502, b""), "status 502, Bad Gateway"),
        ((307, b"", {"Location": "http://127.0.0.1:9/"}), "status 307"),
        ((200, ANSWER, HALF), "IncompleteRead"),
        ((200, ANSWER[:-2], {"Content-Length": None}), "no answer of"),
        ((200, b" " * 2**20), "longer than"),
        ((200, b'{"outputs": {"scores": [[0, 0, 1e999]]}}'), "not finite"),
        ((200, b'{"outputs": [[0]]}'), "another number of classes"),
    ],
)
def test_one_thread_fails_as_many_do(answer, words, rest):
    """What `Client` says of an answer is said of prepared requests, too."""
    texts, verdicts = [], []
    for sent in (one_by_one, by_one_thread):
        with load.Sender(rest.url, [b"a"], retries=0) as send:
            rest.answers = [answer]
            verdicts += sent(send, range(1))
            texts += send.errors
    assert words in texts[0]
    # A client says how often it has tried.
    assert texts[0].removesuffix(" (1 attempts)") == texts[1]
    assert verdicts[0] == verdicts[1] and verdicts[0] in (REFUSED, FAILED)


def test_one_thread_sends_what_a_client_does(rest):
    """The same path, headers and body, with a user, version and name."""
    url = rest.url.replace("//", "//me:secret@") + "/v1/models/m/versions/3"
    with load.Sender(url, [b"a", b"b"], [[RIGHT]] * 2, retries=0) as send:
        assert one_by_one(send, range(2)) == by_one_thread(send, range(2))
    assert rest.requests[:2] == rest.requests[2:]
    assert rest.requests[0][0] == "/v1/models/m/versions/3:predict"
    kept = [
        {name: headers[name] for name in ("Content-Type", "Authorization")}
        for headers in rest.headers
    ]
    assert kept[0] == kept[2] and kept[0]["Authorization"].startswith("Basic ")


def test_one_thread_does_not_wait_for_a_connection_to_end(rest):
    rest.keeps_open = True
    # Far more than an answer takes, on any machine.
    with load.Sender(
        rest.url, [b"a"], [[RIGHT]], retries=0, timeout_s=60.0
    ) as send:
        assert by_one_thread(send, range(1)) == [GOOD]


@pytest.mark.parametrize(
    ("received", "whole"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length:2 \r\nA: b\r\n\r\nab", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", False),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nContent-Length: 1", False),
        (b"", False),
    ],
)
def test_an_answer_is_whole_by_the_length_that_it_tells(received, whole):
    assert rest_transport.is_whole(received) == whole


def test_one_thread_does_not_wait_for_answers(rest):
    """One comes only as the server stops, after those that were due later."""
    with load.Sender(rest.url, [b"a"], [[RIGHT]], retries=0) as send:
        rest.answers = [None]

        def stop():
            while len(rest.requests) < 3 or len(send.matched) < 2:
                time.sleep(0.01)
            rest.stop()

        stopping = threading.Thread(target=stop, daemon=True)
        stopping.start()
        outcomes = send.send_at([0.0] * 3, workers=2)
        stopping.join()
        assert sorted(o.verdict for o in outcomes) == [FAILED, GOOD, GOOD]
        assert max(outcomes, key=lambda o: o.done_s).verdict == FAILED
        # Nobody is there any more.
        assert by_one_thread(send, range(1)) == [FAILED]
        assert any("Connect" in text for text in send.errors)


def test_one_thread_waits_as_long_as_a_client_may(rest, monkeypatch):
    async def late(waited, seconds):
        waited.close()
        assert seconds == 7.0
        raise asyncio.TimeoutError

    with load.Sender(
        rest.url, [b"a"], [[RIGHT]], retries=0, timeout_s=7.0
    ) as send:
        monkeypatch.setattr(rest_transport.asyncio, "wait_for", late)
        assert by_one_thread(send, range(1)) == [FAILED]
        assert [text.endswith(": timed out") for text in send.errors] == [True]


@pytest.mark.parametrize(
    "error",
    [
        ssl.SSLCertVerificationError(1, "[SSL: NO_TRUST] not known (x.c:1)"),
        ConnectionResetError(104, "reset"),
    ],
)
def test_one_thread_tells_of_a_connection_what_a_client_does(
    error, rest, monkeypatch
):
    error.reason = "NO_TRUST"  # As an error of TLS has it.
    texts = []

    def broken(*args, **kwargs):
        raise error

    monkeypatch.setattr(rest_transport.asyncio, "open_connection", broken)
    monkeypatch.setattr(connections.TimedConnection, "connect", broken)
    for sent in (one_by_one, by_one_thread):
        with load.Sender(rest.url, [b"a"], [[RIGHT]], retries=0) as send:
            assert sent(send, range(1)) == [FAILED]
            texts += send.errors
    assert str(error) in texts[0]
    assert texts[0].removesuffix(" (1 attempts)") == texts[1]


def test_an_error_of_ours_ends_the_load_of_one_thread(rest, monkeypatch):
    now = asyncio.sleep

    async def sleep(seconds):
        """As long as it takes until all that was sent has ended."""
        while asyncio.all_tasks() - {asyncio.current_task()}:
            await now(0.001)

    monkeypatch.setattr(load.asyncio, "sleep", sleep)
    with load.Sender(
        rest.url, [b"a"], [[RIGHT]], retries=0, num_classes=5
    ) as send:
        with pytest.raises(ValueError, match="`num_classes`: 5"):
            send.send_at([0.0, 3_600.0, 7_200.0])
    assert len(rest.requests) == 1


def test_retries_and_grpc_have_threads(rest, monkeypatch):
    """One thread does not try again, and its requests are bytes of HTTP."""
    used = []
    monkeypatch.setattr(
        load, "send_at", lambda due_s, send, workers: used.append(workers)
    )
    with load.Sender(rest.url, [b"a"], [[RIGHT]], retries=1) as send:
        send.send_at([0.0], workers=3)
    with load.Sender(
        "grpc://127.0.0.1:9", [b"a"], [[RIGHT]], retries=0
    ) as send:
        send.send_at([0.0], workers=4)
    assert used == [3, 4]


def test_a_server_may_be_asked_first_what_is_right(rest):
    with load.Sender(rest.url, [b"a"], retries=0) as send:
        assert send(0) == GOOD
        rest.answers = [(200, b'{"outputs": [[0.25, 0.25, 0.75]]}')]
        assert send(1) == WRONG
    bad = b'{"outputs": {"scores": [[0, 0, 0]], "valid": [false],'
    rest.answers = [(200, bad + b'"error": [1]}}')]
    with pytest.raises(address.ServerError, match="RIFF"):
        load.Sender(rest.url, [b"a"], retries=0)
