"""Plants each fault and runs its tests, of which one must fail.

    make test-defects
    PYTHONPATH=tests .venv/bin/python -m defects --jobs 2 --only hashing

Each fault is planted in a copy of the repository of its own. TensorFlow and
Keras are imported once, here, and each copy is tested in a fork of this
process, where `audio_tf` is that of the copy. The tests that are named run
without any fault first.

A fault is CAUGHT if a test fails. It SURVIVED if all pass. It is BROKEN if
its old text is not there, what it makes is no Python or lacks a name, no test
has the name given, or that test fails or is skipped without the fault too.
The status is 0 if all are caught.
"""

import argparse
import ast
import gc
import importlib
import importlib.util
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import defects

# Imported once for all faults, those that are there; none of our own.
HEAVY = (
    "tensorflow keras keras_hub numpy scipy scipy.signal scipy.fft "
    "scipy.stats sklearn sklearn.linear_model sklearn.ensemble soundfile "
    "pytest hypothesis tensorflow_serving.apis.predict_pb2 tqdm matplotlib"
).split()
# A fault may ask for any memory; TensorFlow maps 5 GB of addresses.
MAX_BYTES = 12 * 2**30
# A fault that misses a name is a slip of whoever wrote it.
SLIPS = (NameError, SyntaxError, ImportError)


def import_heavy():
    """Imports `HEAVY`, without the lines that TensorFlow writes to stderr."""
    stderr = os.dup(2)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        for name in HEAVY:
            if importlib.util.find_spec(name.split(".")[0]):
                importlib.import_module(name)
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
    # What all forks share, no garbage collection of theirs has to look at.
    gc.freeze()


class Witness:
    """A pytest plugin that selects tests and notes what became of them.

    Args:
        selectors: iterable of str, beginnings of ids of tests.
    """

    def __init__(self, selectors):
        self.selectors = tuple(selectors)
        self.passed, self.failed, self.broken = [], [], []

    def pytest_collection_modifyitems(self, config, items):
        chosen = [i for i in items if i.nodeid.startswith(self.selectors)]
        items[:] = chosen
        for selector in self.selectors:
            if not any(i.nodeid.startswith(selector) for i in chosen):
                self.broken.append(f"no test {selector}")

    def pytest_collectreport(self, report):
        if report.failed:
            self.broken.append(f"{report.nodeid} cannot be collected")

    def pytest_exception_interact(self, node, call, report):
        if isinstance(call.excinfo.value, SLIPS):
            self.broken.append(f"{node.nodeid}: {call.excinfo.exconly()}")

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.passed and report.when == "call":
            self.passed.append(report.nodeid)


def copy_repository(target):
    """Copies what git tracks or would, to where git finds it tracked."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=defects.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if (defects.ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(defects.ROOT / name, target / name)
    subprocess.run(["git", "init", "--quiet", "--template="], cwd=target)


def fork(root, selectors, stop, log):
    """Runs tests of a copy in a child process.

    Args:
        root: `pathlib.Path`, the copy.
        selectors: iterable of str, beginnings of ids of tests.
        stop: bool, whether the first failure ends the run.
        log: `pathlib.Path`, takes what is printed.

    Returns:
        The process id. The child writes what its `Witness` noted to
        `<log>.json`.
    """
    child = os.fork()
    if child:
        return child
    status = 3
    try:
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
        os.chdir(root)
        ours = str(defects.FOLDER.parent)
        sys.path[:] = [str(root)] + [p for p in sys.path if p not in ("", ours)]
        os.environ["PYTHONPATH"] = str(root)
        # Of a file as large as the old one, and as old, it would be found.
        sys.dont_write_bytecode = stop
        status = test(root, selectors, stop, log.with_suffix(".json"))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def test(root, selectors, stop, notes):
    """Runs the tests in this process, and writes what became of them."""
    import pytest

    found = importlib.util.find_spec("audio_tf").origin
    if not pathlib.Path(found).is_relative_to(root):
        raise RuntimeError(f"audio_tf is not the copy's. Received: {found}")
    witness = Witness(selectors)
    files = dict.fromkeys(selector.split("::")[0] for selector in selectors)
    options = ["-q", "-p", "no:cacheprovider", "--basetemp", f"{notes}.tmp"]
    if stop:
        options.append("-x")
    status = int(pytest.main([*options, *files], plugins=[witness]))
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "audio_tf" and module.__file__:
            if not pathlib.Path(module.__file__).is_relative_to(root):
                witness.broken.append(f"{name} is not the copy's")
    if status not in (0, 1, 5):
        witness.broken.append(f"pytest ended with status {status}")
    seen = {k: getattr(witness, k) for k in ("passed", "failed", "broken")}
    notes.write_text(json.dumps(seen))
    return status


class Run:
    """One copy of the repository, tested in one child process.

    Args:
        pristine: `pathlib.Path` of the copy without a fault.
        fault: `defects.Fault`, or `None` to test the pristine copy itself.
        selectors: iterable of str, beginnings of ids of tests.
    """

    def __init__(self, pristine, fault, selectors):
        self.fault, self.selectors = fault, selectors
        self.began = time.monotonic()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="defect_"))
        root = pristine
        if fault is not None:
            root = self.folder / "audio_tf"
            shutil.copytree(pristine, root, symlinks=True)
            link_shared(self.folder)
            file = root / fault.file
            file.write_text(fault.planted(file.read_text()))
            # No compiled file of the old text may be taken for this one.
            os.utime(file, (1, 1))
        self.log = self.folder / "log"
        self.child = fork(root, selectors, fault is not None, self.log)

    def end(self, status):
        """Reads what the child noted, and removes the copy.

        Returns:
            Dict of lists of str, `passed`, `failed` and `broken`.
        """
        self.seconds = time.monotonic() - self.began
        self.printed = self.log.read_text(errors="replace")
        notes = self.log.with_suffix(".json")
        if notes.exists():
            noted = json.loads(notes.read_text())
        else:
            noted = {"passed": [], "failed": []}
            noted["broken"] = [f"its process ended with status {status}"]
        shutil.rmtree(self.folder, ignore_errors=True)
        return noted


def link_shared(folder):
    """Tests look for real audio beside the repository."""
    shared = defects.ROOT.parent / "shared"
    if shared.exists():
        (folder / "shared").symlink_to(shared)


def run_all(starts, jobs, finish):
    """Runs up to `jobs` at a time.

    Args:
        starts: list of functions that return a `Run`.
        jobs: int.
        finish: function of `(run, noted)`, called as each ends.
    """
    starts, running = list(starts), {}
    try:
        while starts or running:
            while starts and len(running) < jobs:
                run = starts.pop(0)()
                running[run.child] = run
            child, status = os.wait()
            run = running.pop(child, None)
            if run is not None:
                finish(run, run.end(os.waitstatus_to_exitcode(status)))
    finally:
        for child, run in running.items():
            os.kill(child, 15)
            os.waitpid(child, 0)
            shutil.rmtree(run.folder, ignore_errors=True)


def verify(pristine, faults, jobs):
    """Runs the named tests without a fault, a file at a time.

    Returns:
        Dict by selector of what is wrong with it, for those that name no
        test that passes, or one that fails.
    """
    files = {}
    for fault in faults:
        for selector in fault.tests:
            files.setdefault(selector.split("::")[0], set()).add(selector)
    wrong = {}

    def finish(run, noted):
        print(f"without a fault  {run.seconds:6.1f} s  {run.file}", flush=True)
        for selector in run.selectors:
            fails = [t for t in noted["failed"] if t.startswith(selector)]
            if fails:
                wrong[selector] = f"{fails[0]} fails without the fault"
            elif not any(t.startswith(selector) for t in noted["passed"]):
                wrong[selector] = f"no test {selector} passes {noted['broken']}"
        if any(selector in wrong for selector in run.selectors):
            print(run.printed[-3000:])

    def start(file):
        run = Run(pristine, None, sorted(files[file]))
        run.file = file
        return run

    run_all([lambda f=f: start(f) for f in files], jobs, finish)
    return wrong


def plant(pristine, faults, jobs):
    """Plants each fault and prints what became of it.

    Returns:
        The number of faults that were caught.
    """
    results = {"CAUGHT": [], "SURVIVED": [], "BROKEN": []}
    unusable, starts = verify(pristine, faults, jobs), []

    def report(result, fault, seconds, why):
        results[result].append(fault)
        number = sum(map(len, results.values()))
        print(
            f"{number:4d}/{len(faults)}  {result:8s} {seconds:6.1f} s  "
            f"{fault.name}  [{why}]",
            flush=True,
        )

    def finish(run, noted):
        if noted["broken"]:
            print(run.printed[-3000:])
            report("BROKEN", run.fault, run.seconds, noted["broken"][0])
        elif noted["failed"]:
            report("CAUGHT", run.fault, run.seconds, noted["failed"][0])
        else:
            why = f"{len(noted['passed'])} tests passed"
            report("SURVIVED", run.fault, run.seconds, why)

    for fault in faults:
        wrong = [unusable[t] for t in fault.tests if t in unusable]
        wrong += unfit(pristine, fault)
        if wrong:
            report("BROKEN", fault, 0.0, wrong[0])
        else:
            starts.append(lambda f=fault: Run(pristine, f, f.tests))
    run_all(starts, jobs, finish)
    for result in ("SURVIVED", "BROKEN"):
        for fault in results[result]:
            print(f"{result}: {fault.name}\n{fault.change()}")
    return len(results["CAUGHT"])


def unfit(root, fault):
    """List of what keeps a fault from being planted; empty if nothing."""
    try:
        ast.parse(fault.planted((root / fault.file).read_text()))
    except (OSError, SyntaxError, ValueError) as error:
        return [str(error)]
    return []


def main():
    parser = argparse.ArgumentParser(
        prog="python -m defects",
        description="Plants each fault in a copy of the repository, where one "
        "of the tests that it names must fail.",
    )
    parser.add_argument("--jobs", type=int, default=1, help="at a time")
    parser.add_argument(
        "--only",
        default="",
        metavar="WORDS",
        help="only faults whose file and title hold these words",
    )
    parser.add_argument(
        "--list", action="store_true", help="print the faults, plant none"
    )
    arguments = parser.parse_args()
    faults = [
        fault
        for fault in defects.faults()
        if all(word in fault.name for word in arguments.only.split())
    ]
    if arguments.list:
        print("| file | fault | one of these tests fails |\n|---|---|---|")
        for fault in faults:
            tests = ", ".join(f"`{test}`" for test in fault.tests)
            print(f"| {fault.file} | {fault.title} | {tests} |")
        return 0
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import_heavy()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="defects_") as folder:
        link_shared(pathlib.Path(folder))
        pristine = pathlib.Path(folder) / "audio_tf"
        pristine.mkdir()
        copy_repository(pristine)
        caught = plant(pristine, faults, arguments.jobs)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{time.monotonic() - began:.0f} s; {used.ru_utime + used.ru_stime:.0f}"
        f" s of processor time with {arguments.jobs} jobs"
    )
    print(f"{caught} of {len(faults)} caught")
    return int(caught < len(faults) or not faults)


if __name__ == "__main__":
    sys.exit(main())
