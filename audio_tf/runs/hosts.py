"""Training over several hosts: how they meet, agree, and end together.

All hosts run the same program on JAX. What computes runs on all of them, in
the same order, or they would wait for each other in vain; what writes runs on
the first one alone.
"""

import atexit
import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest.mock

import keras
import numpy as np

from audio_tf import console
from audio_tf.data.shares import Share
from audio_tf.runs import checkpoints, corpus_records, distribution, last_words
from audio_tf.runs.host_settings import places
from audio_tf.runs.settings import flag
from audio_tf.version import __version__

# Seconds until a host that no longer answers is given up.
LOST_AFTER_S = 30
# How a message begins that is from JAX' own code.
STATUS = re.compile(
    "(ABORTED|CANCELLED|DEADLINE_EXCEEDED|INTERNAL|UNAVAILABLE|UNKNOWN): "
)
# Seconds that the hosts which have come wait for the others.
CONNECT_WITHIN_S = 300


@contextlib.contextmanager
def scope(settings, out):
    """Makes a context in which a model is built and trained over all hosts.

    It must be entered before the backend computes anything. Its end waits for
    all hosts and parts them: what the first does afterwards it does alone, on
    its own devices.

    Args:
        settings: `HostSettings`, of a program with a `seed`.
        out: folder of the run.

    Yields:
        `Share` of this host.

    Raises:
        ValueError: if the hosts cannot be connected.
    """
    addresses, count, index = places(settings)
    # Before Keras would agree on another one.
    keras.utils.set_random_seed(settings.seed)
    if count == 1:
        with distribution.scope(settings.distribution):
            yield Share(devices=distribution.num_devices())
        return
    with contextlib.ExitStack() as stack:
        connect(addresses, count, index, out)
        if index:
            print(f"host {index} of {count}: host 0 writes and reports")
            nowhere = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        try:
            with distribution.scope(settings.distribution):
                yield Share(index, count, distribution.num_devices())
                part()
        except BaseException as error:
            # JAX would wait for the others, and end with lines of its own.
            atexit.register(end)
            sys.stderr.flush()
            os.write(2, last_words.ENDS)
            raise named(error, count) from error


def connect(addresses, count, index, out):
    """Connects this host with all others.

    Args:
        addresses: str, as `keras.distribution.initialize` takes it.
        count: int, how many hosts there are.
        index: int, the number of this host.
        out: folder of the run.
    """
    import jax

    filter_errors(
        f"audio-tf: host {index} of {count} ends: another host was lost, or "
        f"not all have come within {CONNECT_WITHIN_S} s; --resume goes on "
        f"from the last checkpoint of {out}, over any number of hosts"
    )
    # It catches SIGTERM, by which schedulers end a process, and lets it go on.
    jax.config.update("jax_enable_preemption_service", False)
    initialize = functools.partial(
        jax.distributed.initialize,
        heartbeat_timeout_seconds=LOST_AFTER_S,
        initialization_timeout=CONNECT_WITHIN_S,
    )
    # Keras has no arguments for how long hosts wait.
    with unittest.mock.patch.object(jax.distributed, "initialize", initialize):
        keras.distribution.initialize(addresses, count, index)


def filter_errors(line):
    """Lets the standard error of the process run through `last_words`.

    Args:
        line: str, what is written when JAX ends the process.
    """
    sys.stderr.flush()
    words = subprocess.Popen(
        [sys.executable, "-S", last_words.__file__, line],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the training alone.
    )
    os.dup2(words.stdin.fileno(), 2)
    words.stdin.close()

    def wait():
        sys.stderr.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        words.wait()

    atexit.register(wait)
    if sys.platform == "linux":
        import ctypes

        # JAX aborts: without a core dump, and without a word of the shell.
        libc = ctypes.CDLL(None)
        libc.signal(signal.SIGABRT, libc._exit)


def end():
    """Ends the process at once, without waiting for other hosts."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(console.FAILED)


def named(error, count):
    """Returns an error that says what has failed, where JAX raised it.

    Args:
        error: the exception.
        count: int, how many hosts there are.
    """
    # JAX raises a class of its own of `RuntimeError`, in places that class, and
    # what it meets while it fetches an array as `ValueError`, with the status.
    is_status = isinstance(error, ValueError) and STATUS.match(str(error))
    if not isinstance(error, RuntimeError) and not is_status:
        return error
    return RuntimeError(
        f"A step of {count} hosts failed, on this one or since another was "
        f"lost. Received: {console.one_line(error)}"
    )


def part():
    """Waits until all hosts are here, and parts them."""
    import jax

    wait("trained")
    jax.distributed.shutdown()


def wait(name):
    """Waits until all hosts are here.

    Args:
        name: str, what they wait for.
    """
    from jax.experimental import multihost_utils

    multihost_utils.sync_global_devices(name)


@contextlib.contextmanager
def alone():
    """Makes a context that computes on this host and not on others."""
    spread = keras.distribution.distribution()
    keras.distribution.set_distribution(None)
    try:
        yield
    finally:
        keras.distribution.set_distribution(spread)


def gathered(text, share):
    """Returns a list of the texts of all hosts.

    Args:
        text: str, this host's.
        share: `Share`.
    """
    if share.count == 1:
        return [text]
    from jax.experimental import multihost_utils

    own = np.frombuffer(text.encode(), np.uint8)
    sizes = multihost_utils.process_allgather(np.array([len(own)], np.int32))
    padded = np.zeros(sizes.max(), np.uint8)
    padded[: len(own)] = own
    rows = multihost_utils.process_allgather(padded)
    return [
        bytes(row[:size]).decode()
        for row, size in zip(np.asarray(rows), sizes.ravel(), strict=True)
    ]


def first_says(flag, share):
    """Returns what the first host says, on every host.

    Args:
        flag: bool, this host's own.
        share: `Share`.
    """
    if share.count == 1:
        return flag
    from jax.experimental import multihost_utils

    said = multihost_utils.broadcast_one_to_all(np.array(flag, np.int32))
    return bool(said)


def check_alike(facts, share):
    """Raises a `ValueError` if hosts would not train the same.

    Args:
        facts: dict that JSON can hold, of what must be equal.
        share: `Share`.
    """
    first, *others = [
        json.loads(text)
        for text in gathered(json.dumps(facts, sort_keys=True), share)
    ]
    for number, other in enumerate(others, start=1):
        for name in first:
            if first[name] != other[name]:
                raise ValueError(
                    f"All hosts must have the same {name}. Received: "
                    f"{first[name]!r} on host 0, {other[name]!r} on host "
                    f"{number}"
                )


def check_same(settings, record, out, free, share, later=None):
    """Checks that a run goes on with its files, and that hosts have the same.

    Args:
        settings, record, out, free: as `facts` takes them.
        share: `Share` of this host.
        later: as `corpus_records.check` takes it.

    Raises:
        ValueError: if files or settings differ.
    """
    corpus_records.check(out, record, later)
    check_alike(facts(settings, record, out, free), share)


def facts(settings, record, out, free):
    """Returns what must be equal on all hosts, for `check_alike`.

    Args:
        settings: `HostSettings`.
        record: the `corpus_record`, with what was left out once that is
            known.
        out: folder of the run.
        free: names of settings that may differ.

    Returns:
        Dict that JSON can hold.
    """
    same = settings.to_json()["settings"]
    return {
        **{
            flag(name): value
            for name, value in same.items()
            if name not in ("out", *free)
        },
        "corpus": corpus_records.summary(record),
        "files left out": sorted(record["left_out"] or ()),
        "epochs done in --out": checkpoints.epochs_done(
            pathlib.Path(out, "last.keras")
        ),
        "version of audio_tf": __version__,
        "version of Keras": keras.__version__,
    }


def prepared(prepare, whole, share):
    """Prepares the parts of a whole by all hosts, and then the whole.

    Hosts wait for each other here: they must have been found alike.

    Where hosts share a cache, each part is made by one of them; else each
    makes what its own cache lacks.

    Args:
        prepare: function of the whole, or of a part of it, to what is wanted.
        whole: object with `len` and `select`, such as a `Corpus`.
        share: `Share`.

    Returns:
        What `prepare` returns for the whole.
    """
    with alone():
        if share.count > 1:
            rows = np.arange(share.index, len(whole), share.count)
            # A part may have no usable clip, which the whole tells.
            with contextlib.suppress(ValueError):
                if len(rows):
                    prepare(whole.select(rows))
            wait("prepared")
        return prepare(whole)


def folder(path, share):
    """Returns a folder for what all hosts compute and the first one keeps.

    Args:
        path: `pathlib.Path`, the folder of the first host.
        share: `Share`.

    Returns:
        `path`, or on another host one that is removed at its end.
    """
    if share.is_first:
        return path
    scratch = tempfile.TemporaryDirectory()
    atexit.register(scratch.cleanup)
    return pathlib.Path(scratch.name)
