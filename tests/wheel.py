"""The wheel, installed where there is no repository, and used as by a user.

    python tests/wheel.py

builds the source distribution and the wheel, compares what is in them with
the repository, installs the wheel with all that it asks for in a new virtual
environment, and there, in an empty folder, trains, evaluates, exports,
classifies, pre-trains and probes. Then it adds what the page needs, `[app]`,
and runs copies of `tests/app` against the installed library: Chromium opens
the page, drops files and records. `make test-wheel` runs it; most of its
minutes are pip's.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from repository import ROOT, tracked

# What the page's tests need of the repository: no module of the library.
PAGE_TESTS = ("pyproject.toml", "tests/conftest.py", "tests/tiny.py")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# The tests' process must have the installed library as well.
INSTALLED = """
import sys

import audio_tf


def test_the_library_is_the_installed_one():
    assert audio_tf.__file__.startswith(f"{sys.prefix}/lib/")
    assert not any("REPOSITORY" in path for path in sys.path)
"""

# A model that takes seconds to train.
SIZES = {
    "num_layers": 1,
    "num_heads": 2,
    "key_dim": 4,
    "hidden_dim": 8,
    "intermediate_dims": [8],
}


def call(*command, cwd, status=0):
    """Runs a command outside the repository and returns what it prints."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = list(map(str, command))
    print("$", *command, flush=True)
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True
    )
    if done.returncode != status:
        raise SystemExit(
            f"{command[0]} ended with {done.returncode}, not {status}\n"
            + done.stdout[-3000:]
            + done.stderr[-3000:]
        )
    return done.stdout


def make(environment, top):
    """Builds both distributions from a copy of the repository.

    A copy, because setuptools would pack what an earlier build has left.

    Args:
        environment: folder of a virtual environment with `build`.
        top: folder to work in.

    Returns:
        Pair of the paths of the wheel and of the source distribution.
    """
    source = top / "source"
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # Removed, but tracked.
            shutil.copy(ROOT / name, source / name)
    python, made = environment / "bin" / "python", top / "made"
    call(python, "-m", "build", "--sdist", "-o", made, source, cwd=top)
    (sdist,) = made.glob("*.tar.gz")
    for name, of in (("of_sdist", sdist), ("of_source", source)):
        call(
            *(python, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("-w", made / name, of),
            cwd=top,
        )
    (wheel,) = (made / "of_source").iterdir()
    (again,) = (made / "of_sdist").iterdir()
    names = [set(zipfile.ZipFile(each).namelist()) for each in (wheel, again)]
    expect(names[0] == names[1], "sdist and repository make the same wheel")
    return wheel, sdist


def check_contents(wheel, sdist):
    """Compares what is packed with what is in the repository."""
    packed = set(zipfile.ZipFile(wheel).namelist())
    library = {name for name in tracked() if name.startswith("audio_tf/")}
    library = {name for name in library if (ROOT / name).exists()}
    ours = {name for name in packed if name.startswith("audio_tf/")}
    expect(ours == library, f"all of audio_tf is packed {ours ^ library}")
    tops = {name.split("/")[0] for name in packed - ours}
    expect(
        all(top.endswith(".dist-info") for top in tops),
        f"nothing beside audio_tf is installed {sorted(tops)}",
    )
    with tarfile.open(sdist) as file:
        inside = {name.partition("/")[2] for name in file.getnames()}
    wanted = library | {"README.md", "LICENSE", "setup.cfg", "pyproject.toml"}
    expect(wanted <= inside, f"the sdist is whole {wanted - inside}")


def expect(holds, what):
    if not holds:
        raise SystemExit(f"NOT TRUE: {what}")
    print(f"ok: {what}", flush=True)


def check_installed(environment, folder):
    """Looks up which library a process in a folder imports."""
    where = call(
        environment / "bin" / "python",
        *("-c", "import audio_tf; print(audio_tf.__file__)"),
        cwd=folder,
    )
    expect(
        where.startswith(f"{environment}/lib/") and "site-packages" in where,
        "audio_tf is the installed one",
    )


def use(environment, folder):
    """Does what a user does first, in an empty folder."""

    def audio_tf(*arguments, status=0):
        return call(
            environment / "bin" / "audio-tf",
            *arguments,
            cwd=folder,
            status=status,
        )

    check_installed(environment, folder)
    print(audio_tf("--version").strip())

    listed = call(
        environment / "bin" / "python",
        "-c",
        "from audio_tf import released\n"
        "for name, each in released.read_index(released.ROOT).items():\n"
        "    print(name, each.model)",
        cwd=folder,
    )
    released = [line.split() for line in listed.splitlines()]
    shown = audio_tf("presets")
    for name, _ in released:
        expect(f"{name} " in shown, f"{name} is listed")

    corpus = ("--dataset", "synthetic", "--data-dir", "corpus")
    cache = ("--cache-dir", "cache")
    tiny = json.dumps({**SIZES, "frontend_filters": 16})
    audio_tf(
        *("train", *corpus, *cache, "--model-kwargs", tiny, "--out", "run"),
        *("--epochs", "1", "--export"),
    )
    audio_tf(
        *("evaluate", *corpus, *cache, "--model", "run/preset"),
        *("--report", "report.json"),
    )
    report = json.loads((folder / "report.json").read_text())
    said = json.loads((folder / "run" / "test.json").read_text())
    expect(report["mAP"] == said["mAP"], "evaluate agrees with train")
    audio_tf("export", "exported", "--model", "run/preset")
    heard = sorted((folder / "corpus" / "audio").iterdir())[:12]
    clips = heard[:3]
    trained = [n for n, kind in released if kind.endswith("AudioClassifier")]
    for model in ("run/preset", "run/saved_model", "exported", *trained):
        said = audio_tf("classify", *clips, "--model", model, "--json")
        lines = [json.loads(line) for line in said.splitlines()]
        expect(len(lines) == 3, f"classify takes {model}")

    for number, clip in enumerate(heard):
        speaker = folder / "speech" / f"speaker_{number % 2}"
        speaker.mkdir(parents=True, exist_ok=True)
        shutil.copy(clip, speaker / f"{number}.wav")
    speech = ("--dataset", "folder", "--data-dir", "speech", *cache)
    audio_tf(
        *("pretrain", *speech, "--out", "ssl", "--model-kwargs"),
        *(json.dumps(SIZES), "--steps", "2", "--save-every", "2"),
    )
    audio_tf(
        *("probe", *speech, "--model", "ssl/preset", "--out", "probed"),
        *("--tasks", "speaker"),
    )


def use_page(environment, wheel, folder):
    """Runs the tests of the page, copied beside no library.

    They start `audio-tf app` of the environment, in a folder without
    `audio_tf`, and drive it by the system's Chromium.
    """
    if CHROMIUM is None:
        print("THE PAGE IS NOT TRIED: it needs apt-get install chromium")
        return
    python = environment / "bin" / "python"
    needed = f"{wheel}[app,browser,test]"
    call(python, "-m", "pip", "install", "--quiet", needed, cwd=folder)
    tests = [name for name in tracked() if name.startswith("tests/app/")]
    for name in (*tests, *PAGE_TESTS):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    installed = folder / "tests" / "app" / "test_installed.py"
    installed.write_text(INSTALLED.replace("REPOSITORY", str(ROOT)))
    check_installed(environment, folder)
    said = call(python, "-m", "pytest", "-v", "tests/app", cwd=folder)
    print(said, end="")
    expect(
        " passed" in said and " skipped" not in said,
        "the page of the wheel passes its tests, and none is skipped",
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument(
        "--environment",
        type=pathlib.Path,
        help="virtual environment of an earlier run, to save the downloads",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="audio_tf-wheel-") as top:
        top = pathlib.Path(top)
        folder = top / "empty"
        folder.mkdir()
        environment = arguments.environment or top / "environment"
        if not environment.is_dir():
            call(arguments.python, "-m", "venv", environment, cwd=top)
        pip = (environment.resolve() / "bin" / "python", "-m", "pip")
        call(*pip, "install", "--quiet", "build", cwd=top)
        wheel, sdist = make(environment, top)
        check_contents(wheel, sdist)
        call(*pip, "install", "--quiet", wheel, cwd=top)
        # The same version may be there already, of other files.
        again = ("--force-reinstall", "--no-deps")
        call(*pip, "install", "--quiet", *again, wheel, cwd=top)
        use(environment.resolve(), folder)
        page = top / "page"
        page.mkdir()
        use_page(environment.resolve(), wheel, page)


if __name__ == "__main__":
    main()
