"""A stand-in for TensorFlow Serving under fire.

    PYTHONPATH=tests .venv-serving/bin/python -m serving.fire curves
    PYTHONPATH=tests .venv-serving/bin/python -m serving.fire overload
    PYTHONPATH=tests .venv-serving/bin/python -m serving.fire rolling
    PYTHONPATH=tests .venv-serving/bin/python -m serving.fire chaos

Each has --seconds, and --help. `make test-serving` makes .venv-serving; nginx
is Debian's package nginx-light. Exit status 1 if something did not hold.
"""

import argparse
import importlib
import os
import signal
import sys

PARTS = {
    "curves": "latency against load until it breaks",
    "overload": "three times what it can do, and after",
    "rolling": "version 1 to version 2",
    "chaos": "kills, bad and slow clients, a full disk",
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="part", required=True)
    parts = {}
    for name, text in PARTS.items():
        parts[name] = importlib.import_module(f"serving.{name}")
        parts[name].add(commands.add_parser(name, help=text))
    arguments = parser.parse_args()
    # Whoever ends this ends the servers too, and sees how far it came.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.stdout.reconfigure(line_buffering=True)
    return parts[arguments.part].run(arguments)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.exit(main())
