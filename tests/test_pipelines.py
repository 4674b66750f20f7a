"""What is common to the commands that run on Apache Beam, without it."""

import io
import re
import subprocess
import sys
import threading

import pytest
import tqdm

from audio_tf import configs, pipelines


@pytest.mark.parametrize("every_s", [0.0, 3600.0])
def test_a_bar_shows_what_others_have_done(every_s):
    """However seldom it looks, it has looked when the work is done."""
    there, seen, often = iter([3, None, None]), [], threading.Event()

    def look(bar):
        seen.append(bar.n)
        if len(seen) > 4:
            often.set()
        if (done := next(there, 7)) is None:
            raise OSError("the folder cannot be seen")
        bar.n = done

    terminal = io.StringIO()
    bar = tqdm.tqdm(total=7, file=terminal, mininterval=0)
    with pipelines.Watch(bar, look, every_s) as watch:
        assert seen[0] == 0 and "3/7" in terminal.getvalue()
        if every_s == 0.0:
            assert often.wait(60.0)
    assert not watch.is_alive()
    if every_s == 0.0:
        assert bar.n == 7 and "7/7" in terminal.getvalue()
    else:
        # The last look failed, which is no reason to fail.
        assert len(seen) == 2 and bar.n == 3


def test_flags_of_beam_may_have_blanks_in_quotes():
    split = pipelines.split_options
    assert split("") == []
    assert split("--region=x  --labels='{\"a\": 1}' --job_name='a b'") == [
        "--region=x",
        '--labels={"a": 1}',
        "--job_name=a b",
    ]
    with pytest.raises(ValueError, match="--beam .*No closing quotation"):
        split("--x='a")


@pytest.mark.parametrize(
    ("ends", "code", "later"),
    [
        ("leave_at_once(0)", 0, False),
        ("leave_at_once(0); 1 / 0", 1, False),
        # The process that runs the pipeline itself.
        ("leave_at_once(os.getpid())", 0, True),
    ],
)
def test_a_worker_ends_at_once_with_its_status(ends, code, later):
    script = (
        "import atexit, os; from audio_tf.pipelines import leave_at_once; "
        "atexit.register(print, 'taken apart'); print('done'); "
    )
    done = subprocess.run(
        [sys.executable, "-c", script + ends], capture_output=True, text=True
    )
    assert done.returncode == code
    assert done.stdout.split("\n")[:-1] == ["done", "taken apart"][: 1 + later]
    assert ("ZeroDivisionError" in done.stderr) == bool(code)


GONE = (
    "import signal, threading; from audio_tf import pipelines\n"
    "pipelines.LOST_AFTER_S = 0.0\n"
    "hook = threading.excepthook\n"
    "def gone():\n"
    "    raise RuntimeError('Worker subprocess exited with return code -9')\n"
    "def wait_long(function):\n"
    "    threading.Thread(target=function).start()\n"
    "    threading.Event().wait(30.0)\n"
    "try:\n"
    "    with pipelines.lost_workers_told():\n"
    "        %s\n"
    "except BaseException as error:\n"
    "    print(type(error).__name__, error)\n"
    "print(hook == threading.excepthook)\n"
    "print(signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL)\n"
)


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("wait_long(gone)", "LostWorker a worker has ended.* code -9"),
        # By Ctrl-C, of which the workers have heard, too, or by an error.
        *(
            (
                f"exec('try: raise {error}\\nfinally: wait_long(gone)')",
                error,
            )
            for error in ("KeyboardInterrupt", "OSError")
        ),
        # Some other thread failed, and whoever runs goes on.
        (
            "each = threading.Thread(target=lambda: 1 / 0); each.start(); "
            "each.join(); print('went on')",
            "went on",
        ),
    ],
)
def test_a_worker_that_was_killed_is_not_waited_for(does, told):
    done = subprocess.run(
        [sys.executable, "-c", GONE % does],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert re.match(f"{told}.*\nTrue\nTrue\n$", done.stdout), done


def test_a_worker_knows_what_configs_have_added(tmp_path, monkeypatch):
    """By the environment, which it has of whoever starts it; each once."""
    for name in (configs.VARIABLE, "TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "[]")
    monkeypatch.setattr(configs, "executed", {})
    monkeypatch.setattr(pipelines, "OWN_FLAGS", [])
    config = tmp_path / "mine.py"
    config.write_text(
        "from audio_tf import pipelines\n"
        "pipelines.OWN_FLAGS = [*pipelines.OWN_FLAGS, 'mine']\n"
    )
    configs.execute(config)
    pipelines.local_options(2)
    seen = []
    pipelines.do_task("shard", seen.append)
    assert seen == ["shard"] and pipelines.OWN_FLAGS == ["mine"]
    script = (
        "from audio_tf import pipelines; pipelines.do_task('shard', "
        "lambda task: print(task, pipelines.OWN_FLAGS[-1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert done.stdout == "shard mine\n"
