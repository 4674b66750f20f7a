"""From version 1 to version 2 under load, in place and copy by copy."""

import concurrent.futures
import threading
import time

from audio_tf.client import load, load_figures
from serving import ground

# Longer than any change takes.
MOST_S = 3600.0


def add(parser):
    ground.add_flags(
        parser,
        seconds=20.0,
        rate_per_s=10.0,
        meaning="before and after the change",
    )
    parser.set_defaults(copies=2)
    parser.add_argument(
        "--retries",
        type=int,
        default=0,
        help="attempts after the first; 0 shows each request that would fail",
    )
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))


def run(arguments):
    violations = []
    with ground.made(arguments) as made:
        for way in arguments.ways:
            folder = made.model(way, 1)
            copies = 1 if way == "place" else arguments.copies
            with made.fleet(folder, f"fleet_{way}", copies=copies) as fleet:
                violations += roll(made, fleet, way, arguments)
    return ground.verdict(violations)


def roll(made, fleet, way, arguments):
    """Loads both transports while the version changes; returns what failed."""
    begun, done, stop = [], [], threading.Event()

    def change():
        """As many seconds before the change as after it."""
        try:
            time.sleep(arguments.seconds)
            begun.append(time.monotonic() - begin)
            WAYS[way](made, fleet)
            done.append(time.monotonic() - begin)
            time.sleep(arguments.seconds)
        finally:
            stop.set()

    violations = []
    pool = concurrent.futures.ThreadPoolExecutor(len(fleet.urls))
    changing = threading.Thread(target=change)
    senders = {
        kind: made.sender(url, retries=arguments.retries)
        for kind, url in fleet.urls.items()
    }
    dues = {
        kind: load.poisson(arguments.rate / len(senders), MOST_S, made.rng)
        for kind in senders
    }
    with pool:
        begin = time.monotonic()
        running = {
            kind: pool.submit(load.send_at, dues[kind], send, 128, stop=stop)
            for kind, send in senders.items()
        }
        changing.start()
        outcomes = {kind: each.result() for kind, each in running.items()}
        changing.join()
    seconds = time.monotonic() - begin
    if not done:
        return [f"{way}: the change failed"]
    print(f"{way}: from {begun[0]:.1f} s to {done[0]:.1f} s of {seconds:.1f} s")
    # Then every answer is the new version's; so is none before the beginning.
    settled = done[0] + 1.0
    for kind, send in senders.items():
        print(
            ground.told(
                f"{way}, {kind}", load_figures.figures(outcomes[kind], seconds)
            )
        )
        answers = [0, 0]
        for number, outcome in enumerate(outcomes[kind]):
            if outcome.verdict != load_figures.GOOD:
                violations.append(
                    f"{way}, {kind}: {outcome.verdict}, due at "
                    f"{outcome.due_s:.2f} s"
                )
                continue
            answer = send.matched[number]
            answers[answer] += 1
            if answer == 1 and outcome.done_s < begun[0]:
                violations.append(f"{way}, {kind}: version 2 before its time")
            if answer == 0 and outcome.sent_s > settled:
                violations.append(f"{way}, {kind}: version 1 after its time")
        print(f"  answers of version 1: {answers[0]}, of 2: {answers[1]}")
        violations += [f"{n} times: {text}" for text, n in send.errors.items()]
        send.close()
    return violations


def in_place(made, fleet):
    """A new folder beside the old one; the server finds it by itself."""
    (copy,) = fleet.copies
    made.publish(copy.folder, 2)
    while b"version 2 answers" not in copy.log.read_bytes():
        time.sleep(0.1)


def copy_by_copy(made, fleet):
    """Each old copy goes when a new one is ready in its place."""
    folder = made.model("copies_2", 2)
    for old in list(fleet.copies):
        new = fleet.new(folder)
        fleet.start(new)
        fleet.await_ready(new)
        fleet.copies.append(new)
        fleet.reload_proxy()
        fleet.copies.remove(old)
        fleet.reload_proxy()
        fleet.drain(old)


WAYS = {"place": in_place, "copies": copy_by_copy}
