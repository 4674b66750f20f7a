"""Three times what a server can do: who is refused, how soon it is well."""

import math

import numpy as np

from audio_tf.client import load
from audio_tf.client.load_figures import (
    FAILED,
    GOOD,
    REFUSED,
    WRONG,
    by_second,
    figures,
)
from serving import ground, watch

CALM, STORM = 0.3, 3.0  # Of what the server can do.
# A server that is well again answers half of the requests as soon as this
# many times the p99 before the storm.
WELL = 3.0
SLOWEST_S = 5.0


def add(parser):
    ground.add_flags(
        parser,
        seconds=20.0,
        rate_per_s=None,
        meaning="of the storm, and of the calm before it",
    )
    parser.add_argument("--transport", choices=["rest", "grpc"], default="rest")
    parser.add_argument(
        "--recovery", type=float, default=5.0, help="seconds that it may take"
    )


def run(arguments):
    seconds = arguments.seconds
    with ground.made(arguments, clip=ground.second_of_sound) as made:
        folder = made.model("models", 1)
        with (
            made.fleet(folder) as fleet,
            made.sender(fleet.urls[arguments.transport]) as send,
        ):
            able = arguments.rate or capacity(send)
            print(f"able to do: {able:.1f} a second")
            loads = [(CALM, seconds), (STORM, seconds), (CALM, 2 * seconds)]
            due, begin = [], 0.0
            for share, length in loads:
                due.append(load.poisson(share * able, length, made.rng, begin))
                begin += length
            watcher = watch.Watcher(fleet.pids)
            with watcher:
                outcomes = send.send_at(np.concatenate(due), 1024)
            grown = watcher.report()
            gone = [c.process.poll() for c in fleet.copies]
        errors = send.errors.items()
    edges = np.cumsum([0.0, *(length for _, length in loads)])
    parts = [
        [o for o in outcomes if start <= o.due_s < end]
        for start, end in zip(edges, edges[1:], strict=False)
    ]
    found = [
        figures(part, length)
        for part, (_, length) in zip(parts, loads, strict=True)
    ]
    for name, each in zip(("before", "storm", "after"), found, strict=True):
        print(ground.told(name, each))
    well_s = recovery(outcomes, edges[2], WELL * found[0].good_p99_s)
    print(f"well again {well_s:.0f} s after the storm; {grown}")
    ground.write_rows(arguments, "overload.jsonl", by_second(outcomes))
    violations = []
    if any(each.wrong for each in found):
        violations.append("wrong answers")
    if any(code is not None for code in gone):
        violations.append("a copy has ended")
    if found[0].good != len(parts[0]):
        violations.append("not all were good before the storm")
    if found[1].failed:
        violations.append(f"{found[1].failed} failed without a refusal")
    if not found[1].refused:
        violations.append("nobody was refused: no storm, or no bound")
    if not found[1].good_p99_s <= SLOWEST_S:
        violations.append(f"good answers took {found[1].good_p99_s:.1f} s")
    if not well_s <= arguments.recovery:
        violations.append(f"not well again within {arguments.recovery:g} s")
    return ground.verdict(violations, errors)


def capacity(send, requests=300, workers=32):
    """Good answers a second to clients that are always waiting for one."""
    send_all = np.zeros(requests)
    send.send_at(send_all[:workers], workers)
    outcomes = send.send_at(send_all, workers)
    good = sum(outcome.verdict == GOOD for outcome in outcomes)
    return good / max(outcome.done_s for outcome in outcomes)


def recovery(outcomes, end_s, well_p50_s):
    """Seconds after a storm until all are good, and as soon as before."""
    last = end_s - 1.0
    for second, row in enumerate(by_second(outcomes)):
        bad = row[REFUSED] + row[FAILED] + row[WRONG]
        slow = not math.isnan(row["p50_s"]) and row["p50_s"] > well_p50_s
        if second >= end_s and (bad or slow):
            last = second
    return last + 1.0 - end_s
