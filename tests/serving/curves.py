"""Latency against load until it breaks, by transport, batching and copies."""

import itertools

from audio_tf.client import load, load_figures
from serving import ground

SWITCH = {"on": True, "off": False}


def add(parser):
    ground.add_flags(
        parser, seconds=20.0, rate_per_s=10.0, meaning="of each load"
    )
    parser.set_defaults(copies=None, batching=None)
    parser.add_argument("--transports", nargs="+", default=["rest", "grpc"])
    parser.add_argument(
        "--batchings", nargs="+", choices=SWITCH, default=["off", "on"]
    )
    parser.add_argument("--numbers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--factor", type=float, default=1.5)
    parser.add_argument("--most", type=int, default=20)
    parser.add_argument(
        "--limit",
        type=float,
        default=1.0,
        help="seconds within which 99 of 100 must have a good answer",
    )


def run(arguments):
    rows = []
    with ground.made(arguments, clip=ground.second_of_sound) as made:
        folder = made.model("models", 1)
        for batching, copies in itertools.product(
            arguments.batchings, arguments.numbers
        ):
            with made.fleet(
                folder,
                f"{batching}_{copies}",
                copies=copies,
                batching=SWITCH[batching],
            ) as fleet:
                for transport in arguments.transports:
                    name = f"{transport}, batching {batching}, "
                    name += f"{copies} {'copy' if copies == 1 else 'copies'}"
                    url = fleet.urls[transport]
                    rows += sweep(made, url, name, arguments)
        ground.write_rows(arguments, "curves.jsonl", rows)
    return ground.verdict(
        [
            f"{row['wrong']} wrong answers: {row['name']}"
            for row in rows
            if row["wrong"]
        ]
    )


def sweep(made, url, name, arguments):
    """Rows of one server, from the first load to twice what broke it."""
    with made.sender(url) as send:

        def measure(rate_per_s, seconds=arguments.seconds):
            due = load.poisson(rate_per_s, seconds, made.rng)
            return load_figures.figures(send.send_at(due, 512), seconds)

        # Threads, connections and graphs of the first batches.
        measure(arguments.rate, min(5.0, arguments.seconds))
        rows = []
        for rate_per_s, found, held in load_figures.until_it_breaks(
            measure,
            arguments.rate,
            arguments.limit,
            arguments.factor,
            most=arguments.most,
        ):
            print(ground.told(name, found), flush=True)
            rows.append(load_figures.row(name, rate_per_s, found, held=held))
        return rows
