"""Workers of a queue and of a training in step, simulated, for `scale.py`.

Scoring and preparing are a queue of shards: a machine is asked for, comes,
becomes warm, takes a shard, and the next one when that is written; a worker
that is lost loses its shard, which another does anew, and is replaced. Near the
end workers without a shard do again what is still running where they would
end it sooner, as shards are written whole. One that finds nothing to do waits
`idle_s` and is handed back, and a machine that has not come by the time that
all shards are taken is not wanted any more: neither is paid from then on. What
all workers read and write goes through one store. Training is in steps that
end with the slowest worker and with the exchange of gradients; a lost worker
sends all back to the last checkpoint.
"""

import dataclasses
import heapq
import math

import numpy as np

# Seconds of sound a second on one machine of 2 cores, each measured with both
# of them; in brackets the section of RESULTS.md.
RATES = {
    # "Archives on Beam": `audio-tf score`, two workers, the whole job: 20,000
    # clips of 2 s on average and ten hours, 76,000 s, in 56 s with its start.
    "score archives": 76_000 / 56,
    # "Serving": decoded in Python, 44.1 kHz 24-bit stereo: a batch of 32
    # clips of 1 s in 92.69 ms.
    "score 44.1 kHz stereo": 32 / 0.09269,
    # "Input pipeline": the first epoch on 2 cores, which decodes 16 kHz files
    # into an empty cache as `prepare` does, and takes batches out of it.
    "prepare Ogg Vorbis": 1_661.0,
    "prepare FLAC": 2_432.0,
    # "Input pipeline": a training step of audio_transformer_small, batch 32.
    "train small": 599.0,
    # "Pre-training": the paper's size, 1,675 frames of 12.5 ms a second.
    "pretrain paper": 1_675 * 0.0125,
}
# Bytes of a second of sound that are read, and that are written. The archives
# are those of the measured job: PCM, float and FLAC at four rates.
BYTES = {
    "score archives": (39_000, 5),
    "score 44.1 kHz stereo": (264_600, 5),
    "prepare Ogg Vorbis": (5_000, 64_000),
    "prepare FLAC": (17_000, 64_000),
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
    idle_s: float = 60.0  # Without anything to do, until it is handed back.
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
        paid_s: float, time of all workers, each from when its machine is
            there until it is handed back or lost, or all shards are written.
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


class Chance:
    """Everything of a queue that is left to chance.

    Args:
        given: `Assumptions`.
        seed: int.
    """

    def __init__(self, given, seed):
        self.given = given
        self.rng = np.random.default_rng(seed)

    def work(self, count):
        """Draws how much more work than usual shards are, `(count,)`."""
        return np.exp(self.rng.normal(0, self.given.shard_spread, count))

    def slowness(self):
        """Draws how much slower than usual a worker is."""
        given = self.given
        drawn = math.exp(self.rng.normal(0, given.speed_spread))
        slow = self.rng.random() < given.straggler_share
        return drawn * given.straggler_slowness if slow else drawn

    def wait_s(self):
        """Draws the seconds until a machine that is asked for is there."""
        spread = self.rng.normal(0, self.given.provision_spread)
        return self.given.provision_s * math.exp(spread)

    def life_s(self):
        """Draws the seconds until a machine that has come is taken away."""
        rate = self.given.lost_per_hour / 3600
        return self.rng.exponential(1 / rate) if rate else math.inf


class Queue:
    """Shards, and the workers that do them.

    Args:
        work_s: array `(shards,)`, seconds of a usual worker.
        workers: int.
        given: `Assumptions`.
        chance: `Chance`.
        again: bool, whether workers do again what is still running.
    """

    def __init__(self, work_s, workers, given, chance, again):
        self.work_s, self.given = work_s, given
        self.chance, self.again = chance, again
        self.todo = list(range(len(work_s)))[::-1]
        self.left = len(work_s)
        self.copies = [0] * len(work_s)
        self.done = [False] * len(work_s)
        self.now = self.paid_s = self.useful_s = 0.0
        self.lost = 0
        self.born, self.ends, self.slow = {}, {}, {}
        self.running, self.idle = {}, set()
        # What comes next for a worker; an earlier plan for it is void.
        self.events, self.latest = [], [0] * workers
        for worker in range(workers):
            self.ask(worker)

    def plan(self, at, worker, what):
        """Notes what a worker does next, and when."""
        self.latest[worker] += 1
        event = at, worker, self.latest[worker], what
        heapq.heappush(self.events, event)

    def plan_or_loss(self, at, worker, what):
        """Notes what a worker does next, unless it is lost before."""
        lost = self.ends[worker] <= at
        self.plan(
            min(at, self.ends[worker]), worker, self.lose if lost else what
        )

    def run(self):
        """Goes from event to event until all shards are written."""
        while self.left:
            self.now, worker, number, what = heapq.heappop(self.events)
            if number == self.latest[worker]:
                what(worker)
        self.paid_s += sum(self.now - born for born in self.born.values())

    def ask(self, worker):
        """Asks for a machine."""
        self.plan(self.now + self.chance.wait_s(), worker, self.come)

    def come(self, worker):
        """A machine is there; it is paid from now on, if it is wanted."""
        if not self.todo:
            return
        self.born[worker] = self.now
        self.ends[worker] = self.now + self.chance.life_s()
        self.slow[worker] = self.chance.slowness()
        warm = self.now + self.given.cold_s + LOAD_S
        self.plan_or_loss(warm, worker, self.look)

    def lose(self, worker):
        """A machine is taken away; another is asked for."""
        self.lost += 1
        self.leave(worker)
        if worker in self.running:
            shard = self.running.pop(worker)[1]
            self.copies[shard] -= 1
            if not self.done[shard] and not self.copies[shard]:
                self.todo.append(shard)
            for each in sorted(self.idle):
                self.look(each)
        self.ask(worker)

    def leave(self, worker):
        """A worker is handed back, or taken away, and is not paid any more."""
        self.idle.discard(worker)
        self.paid_s += self.now - self.born.pop(worker)

    def write(self, worker):
        """A worker has written its shard."""
        shard = self.running.pop(worker)[1]
        self.copies[shard] -= 1
        if not self.done[shard]:
            self.done[shard] = True
            self.left -= 1
            self.useful_s += self.work_s[shard] * self.slow[worker]
        self.look(worker)

    def look(self, worker):
        """A worker without a shard takes one, or waits for one."""
        shard = self.todo.pop() if self.todo else self.find_late(worker)
        if shard is None:
            if worker not in self.idle:
                self.idle.add(worker)
                end = self.now + self.given.idle_s
                self.plan_or_loss(end, worker, self.leave)
            return
        self.idle.discard(worker)
        self.copies[shard] += 1
        end = self.now + self.work_s[shard] * self.slow[worker]
        self.running[worker] = end, shard
        self.plan_or_loss(end, worker, self.write)

    def find_late(self, worker):
        """Finds the shard that ends last, if this worker ends it sooner."""
        late = [
            (end, shard)
            for end, shard in self.running.values()
            if self.copies[shard] == 1
            and not self.done[shard]
            and self.now + self.work_s[shard] * self.slow[worker] < end
        ]
        return max(late)[1] if self.again and late else None


def simulate(kind, hours, workers, given, chance, packed=True, again=True):
    """Simulates shards of a queue.

    Args:
        kind: str, a key of `BYTES`.
        hours: float, of sound.
        workers: int.
        given: `Assumptions`.
        chance: `Chance`.
        packed: see `slowdown`.
        again: bool, whether workers without a shard do again what is still
            running.

    Returns:
        `Outcome`.
    """
    held, limit = slowdown(kind, workers, packed, given)
    count = max(1, round(hours / given.shard_hours))
    work = chance.work(count)
    work *= hours * 3600 / RATES[kind] * held / work.sum()
    queue = Queue(work, workers, given, chance, again)
    queue.run()
    return Outcome(
        queue.now, queue.paid_s, queue.useful_s, queue.lost, count, limit
    )


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
