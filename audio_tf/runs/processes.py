"""Commands of a table in processes of their own, which end with it.

The memory that each takes, also of an accelerator, is free afterwards.
"""

import concurrent.futures
import contextlib
import json
import os
import queue
import shlex
import signal
import subprocess
import sys

from audio_tf import configs, lifeline

# `audio-tf`, wherever it is installed.
AUDIO_TF = (sys.executable, "-m", "audio_tf.cli")
# Seconds that a row which is told to end has to clean up.
ENDS_WITHIN_S = 10.0

# Processes that run for a table now, several where there are several GPUs.
running = set()


def run(command, *flags, device=None):
    """Runs a command of `audio-tf` in a new process, and prints it.

    Args:
        command: str, such as `"train"`.
        *flags: its flags; anything that has a `str`.
        device: str, the GPU that the process sees alone, as
            `CUDA_VISIBLE_DEVICES` names it, or `None` for all there are.

    Raises:
        subprocess.CalledProcessError: if it fails.
    """
    arguments = [command, *map(str, flags)]
    print("$", shlex.join(["audio-tf", *arguments]), flush=True)
    start(arguments, device)


def start(arguments, device=None):
    """Runs `audio-tf` in a new process; the arguments are those of `run`.

    The process ends with the call: an interrupt ends it, too, and so does the
    end of this process.
    """
    environment = configs.environment()
    if device is not None:
        environment["CUDA_VISIBLE_DEVICES"] = device
    # By `-m` it would import from the working folder, whose `ssl.py` may be a
    # config; not where this process finds its modules there, too.
    if not {"", os.getcwd()} & set(sys.path):
        environment["PYTHONSAFEPATH"] = "1"
    command = [*AUDIO_TF, *arguments]
    process = lifeline.start(command, environment)
    running.add(process)
    try:
        status = process.wait()
    except BaseException as error:
        end_running(error)
        raise
    finally:
        running.discard(process)
        process.stdin.close()
    if status:
        raise subprocess.CalledProcessError(status, command)


def ended_by(status):
    """Returns a comment on a process that a signal ended, else an empty text.

    Such a process cannot say why it fails.

    Args:
        status: int, what `Popen.wait` has returned.
    """
    if status >= 0:
        return ""
    reason = ""
    if status == -signal.SIGKILL:
        reason = ", as the kernel does where memory is short"
    return f"  # ended by signal {-status}{reason}"


def end_running(error):
    """Ends the processes of this table, which have a while to clean up.

    Args:
        error: the exception that ends the table.
    """
    ending = list(running)
    # The terminal has told them of Ctrl-C, too.
    told = type(error) is KeyboardInterrupt
    for end, seconds in (
        (lambda process: None, ENDS_WITHIN_S if told else 0.0),
        (subprocess.Popen.terminate, ENDS_WITHIN_S),
        (subprocess.Popen.kill, None),
    ):
        for process in ending:
            end(process)
        for process in ending:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)


def over_devices(function, items):
    """Calls a function of each item, on several GPUs of one item each.

    With one GPU or none, one item comes after the other.

    Args:
        function: function of an item and of the `device` that `run` takes.
        items: list.

    Yields:
        The items, each once its call has returned.
    """
    from audio_tf.runs import distribution

    devices = distribution.gpus()
    if len(devices) < 2:
        for item in items:
            function(item, None)
            yield item
        return
    free = queue.SimpleQueue()
    for device in devices:
        free.put(device)

    def call(item):
        device = free.get()
        try:
            function(item, device)
        finally:
            free.put(device)
        return item

    pool = concurrent.futures.ThreadPoolExecutor(len(devices))
    try:
        calls = [pool.submit(call, item) for item in items]
        for done in concurrent.futures.as_completed(calls):
            yield done.result()
    except (KeyboardInterrupt, GeneratorExit) as error:
        # It has met this thread, and others wait for their processes.
        pool.shutdown(wait=False, cancel_futures=True)
        end_running(error)
        raise
    finally:
        # An error begins no further item.
        pool.shutdown(cancel_futures=True)


def measure(command, file, asked, device=None):
    """Lets a new process measure something, unless that is done.

    The memory that it takes, also of an accelerator, is free afterwards.

    Args:
        command: list of str, the words behind `audio-tf`, to which the file
            and JSON of what is asked are added. It writes a dict that has
            `asked`.
        file: `pathlib.Path` of the JSON file.
        asked: dict that JSON can hold.
        device: as `run` takes it; `""` for no GPU.

    Returns:
        The content of the file.

    Raises:
        subprocess.CalledProcessError: if the process fails.
    """
    if not file.is_file() or json.loads(file.read_text())["asked"] != asked:
        start([*command, str(file), json.dumps(asked)], device)
    return json.loads(file.read_text())
