"""The simulation of `scale.py` against cases that can be computed exactly."""

import dataclasses
import math

import numpy as np
from scale_workers import (
    LOAD_S,
    RATES,
    Chance,
    lost_time,
    simulate,
    train,
)


class Told(Chance):
    """Chances that are told in place of drawn.

    Args:
        given: `Assumptions`.
        slow: float for each machine, in the order in which they come.
        waits: float for each machine that is asked for, in seconds.
        lives: float for each machine, likewise.
    """

    def __init__(self, given, slow, waits, lives):
        super().__init__(given, seed=0)
        self.slow, self.waits, self.lives = map(iter, (slow, waits, lives))

    def slowness(self):
        return next(self.slow)

    def wait_s(self):
        return next(self.waits)

    def life_s(self):
        return next(self.lives)


def check_idle(exact):
    """Compares what is paid with machines that were followed by hand.

    All shards take 100 s, and machines 80 s until they are warm.

    Args:
        exact: `Assumptions` without spread.
    """
    kind, ever = "score archives", math.inf
    hour = 100 * RATES[kind] / 3600
    exact = dataclasses.replace(
        exact, cold_s=80.0 - LOAD_S, shard_hours=hour, idle_s=2.0
    )
    usual = (1, 1, 1, 1)
    for shards, slow, waits, lives, again, wall_s, paid_s, useful_s, lost in (
        # The first two have a shard each, from 87 to 187 and from 90 to 190 s.
        # The first is handed back at 189. The third comes at 20, when shards
        # are left, is warm at 100, finds none and is handed back at 102. The
        # last would come at 150 and is not wanted any more.
        (2, usual, (7, 10, 20, 150), (ever,) * 3, False, 190, 444, 200, 0),
        # The second is lost at 140. The first does its shard, too, until 287.
        # What replaces the second is there at 170, warm at 250, and handed
        # back at 252.
        (2, usual, (7, 10, 30), (ever, 130, ever), False, 287, 492, 200, 1),
        # A single shard. The second waits for one from 90 on, and is lost at
        # 91; what would replace it is not wanted.
        (1, usual, (7, 10, 30), (ever, 81), False, 187, 261, 100, 1),
        # The second would end at 490. The first does its shard again by 287.
        (2, (1, 4), (7, 10), (ever, ever), True, 287, 557, 200, 0),
        # The second ends at 240, sooner than the first would at 287: this one
        # is handed back at 189.
        (2, (1, 1.5), (7, 10), (ever, ever), True, 240, 412, 250, 0),
    ):
        workers = len(waits) - lost
        told = Told(exact, slow, waits, lives)
        found = simulate(kind, shards * hour, workers, exact, told, again=again)
        np.testing.assert_allclose(
            [found.wall_s, found.paid_s, found.useful_s, found.lost],
            [wall_s, paid_s, useful_s, lost],
            err_msg=f"{shards} shards, {waits=}, {lives=}, {slow=}",
        )


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
    kind = "score archives"
    for hours, workers in ((13, 1), (12, 4), (5, 11)):
        found = simulate(
            kind, hours, workers, exact, Chance(exact, 0), again=False
        )
        waves = math.ceil(hours / workers)
        wall = 7.0 + exact.cold_s + LOAD_S + waves * 3600 / RATES[kind]
        np.testing.assert_allclose(found.wall_s, wall, rtol=1e-9)
        np.testing.assert_allclose(
            found.useful_s, hours * 3600 / RATES[kind], rtol=1e-9
        )
    check_idle(exact)
    # One worker, lost at random: a shard of t seconds takes, by the theory of
    # renewals, (exp(t / m) - 1) * (m + r) for lives of m and restarts of r;
    # a worker that is warm already saves the first start of each but the
    # first, so shards are as long as lives, and many.
    often = dataclasses.replace(exact, lost_per_hour=3600 / 40.0, cold_s=0.0)
    seconds = 3600 / RATES[kind]
    found = np.mean(
        [
            simulate(kind, 1, 1, often, Chance(often, seed)).wall_s
            for seed in range(4_000)
        ]
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
