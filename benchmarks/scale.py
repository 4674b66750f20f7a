"""A thousand workers, simulated: time and cost of scoring and of training.

    python benchmarks/scale.py
    python benchmarks/scale.py --check    # against what can be said exactly

Nothing here was run on more than one machine. `RATES` are measured, each with
its place in benchmarks/RESULTS.md; `Assumptions` are not, and every figure
that is printed rests on them. `--set NAME=VALUE` changes one. How workers
behave is said in `scale_workers.py`; docs/scale.md says what follows.
"""

import argparse
import dataclasses

import numpy as np
from scale_check import check
from scale_workers import BYTES, Assumptions, Chance, simulate, train


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
        simulate(kind, hours, workers, given, Chance(given, seed), **options)
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
        f"{dollars / hours * 1_000:,.2f}",
        found[0].limit,
    ]


QUEUE = [
    *("what", "hours", "workers", "time (range)", "useful", "lost workers"),
    *("$", "$ per 1,000 h", "held up by"),
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
    print("5,800 hours of archives scored by 1,000 workers, one thing changed")
    print()
    kind, rows = "score archives", []
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
        (
            "the same, idle workers are kept ten minutes",
            {"shard_hours": 10.0, "idle_s": 600.0},
            {},
        ),
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
