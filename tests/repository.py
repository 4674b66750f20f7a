"""The repository that the tests are of, and its files."""

import contextlib
import importlib
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


@contextlib.contextmanager
def benchmarks(*names):
    """Yields modules of `benchmarks/`, whose scripts run from that folder."""
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    try:
        yield [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(folder)


def tracked():
    """Names of the files that git tracks or would; `None` if it cannot say."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        return None
    names = listed.stdout.splitlines()
    return {name for name in names if (ROOT / name).exists()}
