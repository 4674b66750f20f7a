"""The repository that the tests are of, and its files."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


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
