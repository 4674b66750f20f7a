"""Memory that is freed and asked for again, in processes of their own."""

import dataclasses
import mmap
import os
import platform
import subprocess
import sys

import pytest

from audio_tf import memory
from audio_tf.runs import flags
from audio_tf.runs.settings import Settings

SIZE = 2**26
PAGES = SIZE // mmap.PAGESIZE
TURNS = 20
# Of prctl: pages of 4 KiB and of 2 MiB cannot be counted together.
PR_SET_THP_DISABLE = 41
# Pages that the system hands out while a block is taken and freed in turns.
PROGRAM = f"""
import ctypes, resource
from audio_tf import memory

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.prctl({PR_SET_THP_DISABLE}, 1, 0, 0, 0)
kept = memory.keep_freed() if KEEP else None
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({TURNS}):
    block = libc.malloc({SIZE})
    ctypes.memset(block, 1, {SIZE})
    libc.free(block)
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc",
    reason="WHAT IS FREED IS NOT TESTED: the C library is not glibc",
)


def run(keep, **environment):
    """Returns what `keep_freed` has returned, and how many pages were new."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))
    }
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("KEEP", str(keep))],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return said[0], int(said[1])


@pytest.mark.costly
def test_what_is_freed_is_used_again():
    kept, pages = run(True)
    assert kept == "True" and pages < 2 * PAGES
    # So that the test can fail: without it each turn has pages anew.
    assert run(False)[1] > (TURNS - 1) * PAGES


@pytest.mark.parametrize(
    "environment",
    [
        {"MALLOC_ARENA_MAX": "4"},
        {"GLIBC_TUNABLES": "glibc.malloc.arena_max=4"},
    ],
)
def test_settings_of_the_environment_stand(environment):
    kept, pages = run(True, **environment)
    assert kept == "False" and pages > (TURNS - 1) * PAGES


def test_every_run_keeps_what_is_freed(monkeypatch):
    order = []
    monkeypatch.setattr(memory, "keep_freed", lambda: order.append("kept"))

    @dataclasses.dataclass
    class Nothing(Settings):
        """A run without a setting."""

    flags.run_by_flags(lambda _: order.append("ran"), Nothing, "", argv=[])
    assert order == ["kept", "ran"]
