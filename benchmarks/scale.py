"""A thousand workers, simulated: time and cost of scoring and of training.

    python benchmarks/scale.py
    python benchmarks/scale.py --check    # against what can be said exactly

Nothing here was run on more than one machine. `RATES` are measured, each with
its place in benchmarks/RESULTS.md; `Assumptions` are not, and every figure
that is printed rests on them. `--set NAME=VALUE` changes one. docs/scale.md
says what follows.

Scoring and preparing are a queue of shards: a worker is started, becomes warm,
takes a shard, and the next one when that is written; a worker that is lost
loses its shard, which another does anew, and is replaced. Near the end idle
workers may do again what is still running, as shards are written whole. What
all workers read and write goes through one store. Training is in steps that
end with the slowest worker and with the exchange of gradients; a lost worker
sends all back to the last checkpoint.
"""

import argparse
import dataclasses
import heapq
import math

import numpy as np

# Seconds of sound a second on one worker of 2 cores, each measured; in
# brackets the section of RESULTS.md.
RATES = {
    # "Serving": decoded in Python, 16 kHz mono, batch 32, 498 a core.
    "score 16 kHz WAV": 996.0,
    # "Serving": decoded in Python, 44.1 kHz 24-bit stereo, 173 a core.
    "score 44.1 kHz stereo": 346.0,
    # "Input pipeline": decoded, resampled and cut, 44.1 kHz Ogg.
    "prepare 44.1 kHz Ogg": 748.0,
    # "Input pipeline": the same, 16 kHz FLAC.
    "prepare 16 kHz FLAC": 2323.0,
    # "Input pipeline": a training step of audio_transformer_small, batch 32.
    "train small": 446.0,
    # "Pre-training": the paper's size, 1,675 frames of 12.5 ms a second.
    "pretrain paper": 20.9,
}
# Bytes of a second of sound that are read, and that are written.
BYTES = {
    "score 16 kHz WAV": (32_000, 5),
    "score 44.1 kHz stereo": (264_600, 5),
    "prepare 44.1 kHz Ogg": (12_000, 64_000),
    "prepare 16 kHz FLAC": (17_000, 64_000),
}
# "Serving": seconds until an export is loaded and its first answer is there.
LOAD_S = 0.506 + 0.271
# Bytes of float32 gradients: parameters of audio_transformer_small, "Serving".
GRADIENTS = 3.91e6


@dataclasses.dataclass(frozen=True)
class Assumptions:
    """What was not measured. Times are in seconds, prices in US dollars."""

    # A worker is a machine of 2 cores.
    price_hour: float = 0.08  # A worker for an hour, when it is asked for.
    price_hour_spot: float = 0.03  # The same, when it may be taken away.
    price_store_tb_month: float = 20.0
    price_requests: float = 0.4e-6  # To open one file of a store.
    provision_s: float = 90.0  # Median until a machine is there.
    provision_spread: float = 0.5  # Deviation of the logarithm.
    cold_s: float = 80.0  # Container, Python, TensorFlow; then LOAD_S.
    speed_spread: float = 0.1  # Of workers, deviation of the logarithm.
    straggler_share: float = 0.02
    straggler_slowness: float = 4.0
    shard_spread: float = 0.3  # Of the work in shards.
    lost_per_hour: float = 0.05  # Of each worker that may be taken away.
    lost_per_hour_kept: float = 0.0005  # Of a worker that is ours.
    shard_hours: float = 1.0  # Sound in a shard.
    clip_s: float = 10.0
    store_bytes_s: float = 10e9  # Of all workers together.
    opens_s: float = 5_500.0  # Files that a store opens a second.
    step_spread: float = 0.05  # Of a worker from step to step.
    exchange_bytes_s: float = 1.25e9  # 10 Gbit/s.
    exchange_latency_s: float = 50e-6  # From worker to worker.
    checkpoint_every_s: float = 600.0
    restart_s: float = 120.0  # Until all are in step again, beside machines.
    epochs: float = 10.0


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a simulation.

    Attributes:
        wall_s: float, until the last shard is written.
        paid_s: float, time of all workers.
        useful_s: float, time of these in shards that count.
        lost: int, workers that were lost.
        done: int, shards.
        limit: str, what held the workers up.
    """

    wall_s: float
    paid_s: float
    useful_s: float
    lost: int
    done: int
    limit: str


def slowdown(kind, workers, packed, given):
    """Returns by how much the store holds workers up, and its limit's name.

    Args:
        kind: str, a key of `BYTES`.
        workers: int.
        packed: bool, whether clips are in archives or shards, not in files.
        given: `Assumptions`.
    """
    sound = RATES[kind] * workers
    bytes_s = sound * sum(BYTES[kind])
    opens = sound / (3600 * given.shard_hours if packed else given.clip_s)
    limits = {
        "processors": 1.0,
        "bytes of the store": bytes_s / given.store_bytes_s,
        "files opened": opens / given.opens_s,
    }
    limit = max(limits, key=limits.get)
    return limits[limit], limit


def slowness(count, rng, given):
    """Draws how much slower than usual workers are, `(count,)`."""
    drawn = np.exp(rng.normal(0, given.speed_spread, count))
    slow = rng.random(count) < given.straggler_share
    return np.where(slow, drawn * given.straggler_slowness, drawn)


def simulate(kind, hours, workers, given, seed=0, packed=True, again=True):
    """Simulates shards of a queue.

    Args:
        kind: str, a key of `BYTES`.
        hours: float, of sound.
        workers: int.
        given: `Assumptions`.
        seed: int.
        packed: see `slowdown`.
        again: bool, whether idle workers do again what is still running.

    Returns:
        `Outcome`.
    """
    rng = np.random.default_rng(seed)
    held, limit = slowdown(kind, workers, packed, given)
    count = max(1, round(hours / given.shard_hours))
    work = np.exp(rng.normal(0, given.shard_spread, count))
    work *= hours * 3600 / RATES[kind] * held / work.sum()
    slow = slowness(workers, rng, given)
    todo = list(range(count))[::-1]
    copies, done = np.zeros(count, int), np.zeros(count, bool)
    left, lost, useful = count, 0, 0.0
    born = np.zeros(workers)
    ends = np.zeros(workers)
    paid = 0.0

    def start_s():
        wait = given.provision_s
        wait *= math.exp(rng.normal(0, given.provision_spread))
        return wait, given.cold_s + LOAD_S

    def life():
        rate = given.lost_per_hour / 3600
        return rng.exponential(1 / rate) if rate else math.inf

    events, latest = [], [0] * workers

    def plan_event(at, worker, shard):
        # An idle worker that gets work has an event that is void then.
        latest[worker] += 1
        heapq.heappush(events, (at, worker, shard, latest[worker]))

    for worker in range(workers):
        wait, warm = start_s()
        born[worker], ends[worker] = wait, wait + life()
        plan_event(wait + warm, worker, -1)
    running, idle, now = {}, set(), 0.0
    while left:
        now, worker, shard, number = heapq.heappop(events)
        if number != latest[worker]:
            continue
        if now >= ends[worker]:
            # It was lost at that time; whoever replaces it takes its place.
            at = ends[worker]
            lost += 1
            paid += at - born[worker]
            if shard >= 0:
                running.pop(worker)
                copies[shard] -= 1
                if not done[shard] and not copies[shard]:
                    todo.append(shard)
            wait, warm = start_s()
            born[worker], ends[worker] = at + wait, at + wait + life()
            slow[worker] = slowness(1, rng, given)[0]
            idle.discard(worker)
            plan_event(at + wait + warm, worker, -1)
            continue
        if shard >= 0:
            running.pop(worker)
            copies[shard] -= 1
            if not done[shard]:
                done[shard] = True
                left -= 1
                useful += work[shard] * slow[worker]
        ready = [worker, *sorted(idle)] if todo else [worker]
        idle -= set(ready)
        for each in ready:
            chosen = None
            if todo:
                chosen = todo.pop()
            elif again:
                late = [
                    (end, other)
                    for end, other in running.values()
                    if copies[other] == 1 and not done[other]
                ]
                if late:
                    chosen = max(late)[1]
            if chosen is None:
                idle.add(each)
                # It waits, and may be lost as it waits.
                if ends[each] < math.inf and left:
                    plan_event(max(now, ends[each]), each, -1)
                continue
            copies[chosen] += 1
            end = now + work[chosen] * slow[each]
            running[each] = end, chosen
            plan_event(min(end, ends[each]), each, chosen)
    paid += np.maximum(now - born, 0).sum()
    return Outcome(now, paid, useful, lost, count, limit)


def train(kind, hours, workers, given, kept=False, seed=0, steps=400, batch=32):
    """Simulates training in step: the share of the time that is progress.

    Args:
        kind: str, a key of `RATES`.
        hours: float, of sound.
        workers: int, each with `batch` seconds of sound a step.
        given: `Assumptions`.
        kept: bool, whether machines are ours, or may be taken away.
        seed: int.
        steps: int, steps that are drawn.
        batch: int.

    Returns:
        Dict: `step_s`, `efficiency` against one worker of the usual speed,
        `wall_s` and `paid_s` of all epochs, `lost`.
    """
    rng = np.random.default_rng(seed)
    alone = batch / RATES[kind]
    # Slow machines are found and sent back: else each step is as slow.
    slow = np.exp(rng.normal(0, given.speed_spread, workers))
    each = np.exp(rng.normal(0, given.step_spread, (steps, workers)))
    slowest = (alone * slow * each).max(axis=1).mean()
    exchange = 0.0
    if workers > 1:
        share = (workers - 1) / workers
        exchange = 2 * share * GRADIENTS / given.exchange_bytes_s
        exchange += 2 * (workers - 1) * given.exchange_latency_s
    step_s = slowest + exchange
    total = hours * 3600 * given.epochs / (batch * workers) * step_s
    rate = given.lost_per_hour_kept if kept else given.lost_per_hour
    losses_s = workers * rate / 3600
    restart_s = given.provision_s + given.cold_s + given.restart_s
    more = lost_time(losses_s, given.checkpoint_every_s, restart_s)
    wall = total * more
    return {
        "step_s": step_s,
        "efficiency": alone / step_s / more,
        "wall_s": wall,
        "paid_s": wall * workers,
        "lost": wall * losses_s,
    }


def lost_time(losses_s, every_s, restart_s):
    """Returns how many times as long work takes from checkpoint to checkpoint.

    Losses come at random, also while all is started again: equation 13 of
    Daly, "A higher order estimate of the optimum checkpoint interval for
    restart dumps" (2006), for checkpoints that take no time.

    Args:
        losses_s: float, losses a second.
        every_s: float, seconds between checkpoints.
        restart_s: float, seconds until all is as at the last one.
    """
    if not losses_s:
        return 1.0
    grown = math.expm1(min(losses_s * every_s, 500.0))
    return math.exp(losses_s * restart_s) * grown / (losses_s * every_s)


def shown(seconds):
    """Returns a duration as people say it."""
    if seconds > 5 * 365 * 86_400:
        return "over 5 years"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} s"


def table(heads, rows):
    """Prints a table of Markdown."""
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def queue_row(kind, hours, workers, given, seeds, **options):
    """Simulates some seeds; returns the cells of a row."""
    found = [
        simulate(kind, hours, workers, given, seed, **options)
        for seed in range(seeds)
    ]
    walls = sorted(each.wall_s for each in found)
    paid = np.mean([each.paid_s for each in found]) / 3600
    useful = np.mean([each.useful_s / each.paid_s for each in found])
    opens = hours * 3600 / given.clip_s * given.price_requests
    if options.get("packed", True):
        opens = hours / given.shard_hours * given.price_requests
    dollars = paid * given.price_hour_spot + opens
    return [
        kind,
        f"{hours:,.0f}",
        f"{workers:,}",
        f"{shown(np.median(walls))} ({shown(walls[0])} to {shown(walls[-1])})",
        f"{useful:.0%}",
        f"{np.mean([each.lost for each in found]):,.0f}",
        f"{dollars:,.2f}",
        f"{dollars / hours * 1_000:,.3f}",
        found[0].limit,
    ]


QUEUE = [
    *("what", "hours", "workers", "time (range)", "useful", "lost", "$"),
    *("$ per 1,000 h", "limit"),
]


def report(given, seeds):
    """Prints all tables."""
    print("Assumptions: " + str(given) + "\n")
    rows = [
        queue_row(
            kind,
            hours,
            workers,
            # A tenth of the shards: a simulation of a million takes minutes.
            dataclasses.replace(given, shard_hours=10 * given.shard_hours)
            if hours == 1_000_000
            else given,
            seeds,
        )
        for kind in BYTES
        for hours, workers in (
            (1_000, 10),
            (5_800, 100),
            (5_800, 1_000),
            (1_000_000, 1_000),
        )
    ]
    table(QUEUE, rows)
    print(
        "5,800 hours of 16 kHz WAV scored by 1,000 workers, one thing changed"
    )
    print()
    kind, rows = "score 16 kHz WAV", []
    for name, changes, options in (
        ("as above", {}, {}),
        ("idle workers do nothing again", {}, {"again": False}),
        ("a file for each clip", {}, {"packed": False}),
        ("no limit of the store", {"store_bytes_s": 1e15}, {}),
        ("no stragglers", {"straggler_share": 0.0}, {}),
        ("no worker is lost", {"lost_per_hour": 0.0}, {}),
        ("half an hour each lives", {"lost_per_hour": 2.0}, {}),
        ("machines are warm", {"provision_s": 1e-3, "cold_s": 0.0}, {}),
        ("shards of 6 minutes", {"shard_hours": 0.1}, {}),
        ("shards of 10 hours", {"shard_hours": 10.0}, {}),
    ):
        changed = dataclasses.replace(given, **changes)
        cells = queue_row(kind, 5_800, 1_000, changed, seeds, **options)
        rows.append([name, *cells[3:]])
    table(["changed", *QUEUE[3:]], rows)
    sizes = ((5_800, 1), (5_800, 10), (5_800, 100), (5_800, 1_000))
    cases = [
        (kind, hours, workers, kept)
        for kind in ("train small", "pretrain paper")
        for kept in (False, True)
        for hours, workers in (*sizes, (1_000_000, 1_000))
    ]
    rows = []
    for kind, hours, workers, kept in cases:
        found = train(kind, hours, workers, given, kept)
        price = given.price_hour if kept else given.price_hour_spot
        dollars = found["paid_s"] / 3600 * price
        over = dollars > 1e9
        rows.append(
            [
                kind,
                "kept" if kept else "may be taken away",
                f"{hours:,}",
                f"{workers:,}",
                f"{1_000 * found['step_s']:,.0f} ms",
                f"{found['efficiency']:.1%}",
                shown(found["wall_s"]),
                "-" if over else f"{found['lost']:,.0f}",
                "-" if over else f"{dollars:,.0f}",
                "-" if over else f"{dollars / hours * 1_000:,.2f}",
            ]
        )
    table(
        [
            *("what", "machines", "hours", "workers", "step", "efficiency"),
            *(f"{given.epochs:g} epochs", "lost", "$", "$ per 1,000 h"),
        ],
        rows,
    )
    rows = [
        [
            f"{hours:,}",
            f"{hours * 3600 * 64_000 / 1e12:,.1f} TB",
            f"{hours * 3600 * 64_000 / 1e12 * given.price_store_tb_month:,.0f}",
            f"{hours * 3600 * 64_000 / 2**28:,.0f}",
        ]
        for hours in (1_000, 5_800, 1_000_000)
    ]
    table(["hours", "decoded, 16 kHz", "$ a month", "shards of 256 MiB"], rows)


def check(given):
    """Compares the simulation with cases that can be computed exactly."""
    exact = dataclasses.replace(
        given,
        provision_s=7.0,
        provision_spread=0.0,
        speed_spread=0.0,
        straggler_share=0.0,
        shard_spread=0.0,
        lost_per_hour=0.0,
        store_bytes_s=1e18,
        opens_s=1e18,
    )
    kind = "score 16 kHz WAV"
    for hours, workers in ((13, 1), (12, 4), (5, 11)):
        found = simulate(kind, hours, workers, exact, again=False)
        waves = math.ceil(hours / workers)
        wall = 7.0 + exact.cold_s + LOAD_S + waves * 3600 / RATES[kind]
        np.testing.assert_allclose(found.wall_s, wall, rtol=1e-9)
        np.testing.assert_allclose(
            found.useful_s, hours * 3600 / RATES[kind], rtol=1e-9
        )
    # One worker, lost at random: a shard of t seconds takes, by the theory of
    # renewals, (exp(t / m) - 1) * (m + r) for lives of m and restarts of r;
    # a worker that is warm already saves the first start of each but the
    # first, so shards are as long as lives, and many.
    often = dataclasses.replace(exact, lost_per_hour=3600 / 40.0, cold_s=0.0)
    seconds = 3600 / RATES[kind]
    found = np.mean(
        [simulate(kind, 1, 1, often, seed).wall_s for seed in range(4_000)]
    )
    # Lives begin with LOAD_S of loading, which a loss repeats, too.
    expected = 7.0 + (math.exp((seconds + LOAD_S) / 40.0) - 1) * (40.0 + 7.0)
    np.testing.assert_allclose(found, expected, rtol=0.02)
    # No exchange, no spread, no loss: as fast as was measured.
    same = dataclasses.replace(exact, step_spread=0.0)
    np.testing.assert_allclose(
        train("train small", 1_000, 1, same)["wall_s"],
        1_000 * 3600 * same.epochs / RATES["train small"],
    )
    # A second of work after the other, lost or not, against Daly's equation.
    rng = np.random.default_rng(0)
    rate, every, restart = 1 / 90.0, 60.0, 30.0
    total, blocks = 0.0, 20_000
    for _ in range(blocks):
        while True:
            life = rng.exponential(1 / rate)
            total += min(life, every)
            if life >= every:
                break
            while (life := rng.exponential(1 / rate)) < restart:
                total += life
            total += restart
    np.testing.assert_allclose(
        total / blocks / every, lost_time(rate, every, restart), rtol=0.03
    )
    print("as computed exactly")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE"
    )
    options = parser.parse_args()
    known = {field.name for field in dataclasses.fields(Assumptions)}
    changes = {}
    for each in options.set:
        name, _, value = each.partition("=")
        if name not in known:
            parser.error(f"--set knows {sorted(known)}. Received: {each}")
        changes[name] = float(value)
    given = dataclasses.replace(Assumptions(), **changes)
    if options.check:
        check(given)
    else:
        report(given, options.seeds)


if __name__ == "__main__":
    main()
