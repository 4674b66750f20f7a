"""Pieces of work spread by Apache Beam over processes, or over machines."""

import atexit
import contextlib
import logging
import os
import shlex
import signal
import socket
import sys
import threading

from audio_tf import configs

# How long a job may take, and a job service to answer.
JOB_S, ANSWER_S = 60 * 24 * 3_600, 20
# From the end of a worker to that of the run.
LOST_AFTER_S = 2.0
# Beam's flags that are set here.
OWN_FLAGS = ("--runner", "--direct_num_workers", "--direct_running_mode")


def need(names=("apache_beam",)):
    """Raises an `ImportError` of one line unless Apache Beam is there.

    Args:
        names: modules that must be there, of the extra `beam`.
    """
    for name in names:
        try:
            __import__(name)
        except ImportError as error:
            raise ImportError(
                "It needs Apache Beam and pyarrow: "
                f"pip install 'audio_tf[beam]' ({error})"
            ) from error


def split_options(text):
    """Splits Beam's own flags, given as one text, as a shell does.

    Args:
        text: str; a value with blanks stands in quotes.

    Returns:
        List of str.

    Raises:
        ValueError: if a quotation is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ValueError(
            f"--beam must be flags as a shell splits them: {error}. "
            f"Received: {text!r}"
        ) from None


def local_options(workers):
    """Returns the flags of Beam's runner for this machine.

    Each worker is a process, and the threads of TensorFlow are shared out
    among them: they take these from the environment, as they do the configs
    that this process has executed.

    Args:
        workers: int, how many.
    """
    threads = max(1, (os.cpu_count() or 1) // workers)
    for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))
    os.environ.update(configs.environment())
    mode = "multi_processing" if workers > 1 else "in_memory"
    return [
        "--runner=FnApiRunner",
        f"--direct_num_workers={workers}",
        f"--direct_running_mode={mode}",
    ]


def leave_at_once(parent):
    """Has a worker of this machine end without its imports being taken apart.

    That takes a process with TensorFlow nearly two seconds, and Beam ends its
    workers one after the other. It takes for ever where a thread reads Parquet
    as the interpreter ends, which is so when whoever runs the pipeline is
    killed.

    Args:
        parent: int, the process that runs the pipeline, which is left alone.
    """

    def leave():
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        # Set by an error that nothing has caught.
        os._exit(int(hasattr(sys, "last_value")))

    if os.getpid() != parent:
        atexit.register(leave)


def remote_options(runner, options):
    """Returns the flags of Beam for another runner.

    Args:
        runner: str, its name.
        options: list of str, Beam's own flags.

    Raises:
        OSError: if no job service answers where the flags say.
    """
    from apache_beam.options.pipeline_options import (
        PipelineOptions,
        PortableOptions,
    )

    place = PipelineOptions(options).view_as(PortableOptions).job_endpoint
    if place and ":" in place:
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host, int(port)), ANSWER_S).close()
        except (OSError, ValueError) as error:
            raise OSError(f"no job service at {place} ({error})") from error
    # Beam would wait no longer for a job than for its service to answer.
    return [f"--runner={runner}", f"--job_server_timeout={JOB_S}", *options]


def check_options(options, local):
    """Checks Beam's own flags, and sets what its filesystems need of them.

    Args:
        options: list of str.
        local: bool, whether they are for Beam's runner of this machine. Those
            of others may be known to a server alone.

    Raises:
        ValueError: if a flag is not known or set here already, or a word is
            neither a flag nor the value of one.
    """
    before = "="
    for word in options:
        # A value follows its flag, or stands in it.
        if not word.startswith("-") and (before[:1] != "-" or "=" in before):
            raise ValueError(
                "Beam's flags begin with --, as --parallelism=64 does. "
                f"Received: {word!r}"
            )
        before = word
    names = [word.partition("=")[0] for word in options]
    for name in OWN_FLAGS:
        if names.count(name) > 1:
            raise ValueError(
                "--runner and --workers say what Beam's flags of these would. "
                f"Received: {name} among them"
            )
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions

    parsed = PipelineOptions(options)
    known = parsed.get_all_options(retain_unknown_options=False)
    given = parsed.get_all_options(retain_unknown_options=True)
    unknown = sorted(set(given) - set(known))
    if local and unknown:
        raise ValueError(
            f"Beam has no flag --{unknown[0]}. Received: {' '.join(options)}"
        )
    FileSystems.set_options(parsed)


@contextlib.contextmanager
def logged(path):
    """Keeps what workers of this machine say in a file.

    Args:
        path: path of the file, which is added to, or `None` to leave all as
            it is.

    Yields:
        The standard error as it was, open for writing.
    """
    sys.stderr.flush()
    with os.fdopen(os.dup(2), "w") as terminal:
        if path is None:
            yield terminal
            return
        with open(path, "a") as log:
            os.dup2(log.fileno(), 2)
            try:
                yield terminal
            finally:
                sys.stderr.flush()
                os.dup2(terminal.fileno(), 2)


class LostWorker(RuntimeError):
    """A worker of this machine that has ended before its work."""


@contextlib.contextmanager
def lost_workers_told():
    """Ends the block if a worker of this machine has ended before its work.

    Beam's runner waits for ever for one that was killed, as the system does
    where memory runs out. It waits in a lock, which a signal alone ends, so
    that the block has to be in the main thread; elsewhere nothing is done, nor
    where a program has a handler of SIGUSR1 of its own.

    Raises:
        LostWorker: if one has ended.
    """
    main = threading.main_thread()
    if (
        threading.current_thread() is not main
        or signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL
    ):
        yield
        return
    lost, ended, guard = [], threading.Event(), threading.Lock()
    before = threading.excepthook

    def wake():
        with guard:
            if not ended.is_set():
                ended.set()
                signal.pthread_kill(main.ident, signal.SIGUSR1)

    def heard(failed):
        # Beam's thread that has waited for the process says so.
        if "Worker subprocess exited" in str(failed.exc_value):
            lost.append(str(failed.exc_value))
            # Ctrl-C ends workers, too, and is to be heard first.
            timer = threading.Timer(LOST_AFTER_S, wake)
            timer.daemon = True
            timer.start()
        before(failed)

    def end(number, frame):
        raise LostWorker(
            "a worker has ended before its work, as it does where memory runs "
            f"out ({lost[0]})"
        )

    signal.signal(signal.SIGUSR1, end)
    threading.excepthook = heard
    try:
        yield
    except LostWorker as error:
        # Another error was on its way: Beam was ending the workers.
        if error.__context__ is not None:
            raise error.__context__ from None
        raise
    finally:
        with guard:
            ended.set()
        threading.excepthook = before
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)


class Watch(threading.Thread):
    """A bar that is brought up to date while others do the work.

    It shows what lies on disk, so that it works whatever machines write there,
    as long as this one sees the folder.

    Args:
        bar: `tqdm.tqdm`, which is closed at the end.
        look: function of the bar that brings it up to date.
        every_s: float, seconds between two looks.
    """

    def __init__(self, bar, look, every_s=1.0):
        super().__init__(daemon=True)
        self.bar, self.look, self.every_s = bar, look, every_s
        self.ended = threading.Event()

    def run(self):
        """Looks until it is ended."""
        while not self.ended.wait(self.every_s):
            self.look_once()

    def look_once(self):
        """Looks; a folder that cannot be seen now is no reason to stop."""
        with contextlib.suppress(OSError):
            self.look(self.bar)
            self.bar.refresh()

    def __enter__(self):
        self.look_once()
        if not self.bar.disable:
            self.start()
        return self

    def __exit__(self, *error):
        self.ended.set()
        if self.is_alive():
            self.join()
        self.look_once()
        self.bar.close()


def do_task(task, function):
    """Does a task in a worker, which knows what configs have added by then.

    Args:
        task: what the worker was sent.
        function: function of a task; what it returns is dropped.
    """
    configs.execute_again()
    function(task)


def run(function, tasks, options):
    """Applies a function to tasks, each on any worker, in any order.

    Args:
        function: function of a module, of a task; what it returns is dropped.
        tasks: list of what a worker is sent.
        options: list of str, Beam's own flags.

    Raises:
        RuntimeError: if the pipeline has ended without having done it all.
    """
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    pipeline = beam.Pipeline(options=PipelineOptions(options))
    _ = (
        pipeline
        | "tasks" >> beam.Create(tasks)
        | "spread" >> beam.Reshuffle()
        | "work" >> beam.Map(do_task, function=function)
    )
    finish(pipeline)


def finish(pipeline):
    """Runs a pipeline to its end.

    Args:
        pipeline: `apache_beam.Pipeline`.

    Returns:
        Beam's result of it.

    Raises:
        RuntimeError: if it has ended without having done it all.
    """
    with lost_workers_told():
        result = pipeline.run()
        state = result.wait_until_finish()
    if state not in (None, "DONE"):
        raise RuntimeError(f"the pipeline has ended as {state}")
    return result
