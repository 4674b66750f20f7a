"""What the repository promises of itself."""

import ast
import configparser
import functools
import re
import subprocess
import sys

import pytest
from repository import ROOT, tracked

from audio_tf import released


@pytest.fixture
def files():
    """Names of the files that git tracks or would."""
    names = tracked()
    if names is None:
        pytest.skip("not a git checkout")
    return names


def layout():
    """The lines of the tree in `docs/layout.md`."""
    text = (ROOT / "docs" / "layout.md").read_text()
    return re.search(r"```\n(.*?)```", text, re.DOTALL)[1].splitlines()


def listed_paths():
    """Files and folders of that tree, with their paths."""
    paths, folders = set(), []
    for line in layout():
        depth = (len(line) - len(line.lstrip())) // 4
        names = line.strip().split("  ")[0]
        folders = folders[:depth]
        for name in names.split():
            paths.add("".join(folders) + name)
        if names.endswith("/"):
            folders.append(names)
    return paths


def test_the_listed_files_are_those_there_are(files):
    tree = listed_paths()
    for path in tree:
        if path.endswith("/"):
            assert any(file.startswith(path) for file in files), path
        else:
            assert path in files, path
    for file in files:
        # The index lists the files of released presets.
        preset = re.match("audio_tf/saved_models/.*/", file)
        if file.startswith(("audio_tf/", "training/", "benchmarks/")):
            assert preset or file in tree or file.endswith("__init__.py"), file


@functools.cache
def import_statements(file):
    """All `import` and `from ... import` of a file, those in functions too."""
    kinds = (ast.Import, ast.ImportFrom)
    tree = ast.parse(file.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


@functools.cache
def imports():
    """Dict by module of `audio_tf` of the set of our modules it imports.

    Imports within functions count.
    """
    modules = {}
    for file in (ROOT / "audio_tf").rglob("*.py"):
        parts = file.relative_to(ROOT).with_suffix("").parts
        modules[".".join(parts).removesuffix(".__init__")] = file
    found = {}
    for module, file in modules.items():
        found[module] = set()
        for node in import_statements(file):
            if isinstance(node, ast.Import):
                found[module] |= {alias.name for alias in node.names} & {
                    *modules
                }
            elif isinstance(node, ast.ImportFrom) and node.module in modules:
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    found[module].add(name if name in modules else node.module)
    return found


def test_nothing_is_imported_upwards():
    """The tree lists folders and single files from top to bottom."""
    text = "\n".join(layout())
    library = re.search(r"^audio_tf/ .*?\n(.*?)^\S", text, re.M | re.S)[1]
    rooms = []
    for line in library.splitlines():
        if line.startswith("    ") and not line.startswith("     "):
            names = line.strip().split("  ")[0].split()
            rooms += [
                name.removesuffix("/").removesuffix(".py") for name in names
            ]
    for module, used in imports().items():
        if module == "audio_tf":
            continue  # It hands on what is public.
        room = rooms.index(module.split(".")[1])
        for other in used - {"audio_tf"}:
            assert rooms.index(other.split(".")[1]) >= room, (module, other)


def test_no_two_files_import_each_other():
    used = imports()
    for module in used:
        reached, ahead = set(), set(used[module])
        while ahead:
            reached |= ahead
            ahead = set().union(*(used[each] for each in ahead)) - reached
        assert module not in reached, module


def test_tests_stand_where_the_code_stands():
    """Each folder of tests has the name of a folder of the library."""
    rooms = {path.parent.name for path in (ROOT / "audio_tf").glob("*/*.py")}
    for file in (ROOT / "tests").rglob("test_*.py"):
        folders = file.relative_to(ROOT / "tests").parts[:-1]
        known = {*rooms, "peers", "serving"}
        assert len(folders) <= 1 and set(folders) <= known, file


def test_released_presets_are_what_the_index_says(files):
    """Every file in `saved_models` is listed, and has the bytes listed."""
    listed = {"audio_tf/saved_models/index.json"}
    for name, preset in released.read_index(released.ROOT).items():
        preset.verify()
        listed |= {f"audio_tf/saved_models/{name}/{f}" for f in preset.files}
        assert preset.size_bytes < released.MAX_BYTES
    assert listed == {f for f in files if f.startswith("audio_tf/saved_models")}


def test_scripts_are_no_packages():
    for folder in ("training", "datasets", "benchmarks"):
        assert not (ROOT / folder / "__init__.py").exists()


def test_scripts_only_call_the_library():
    """What they do lives in `audio_tf.runs`, so that a wheel can do it."""
    runs = {path.stem for path in (ROOT / "audio_tf" / "runs").glob("*.py")}
    scripts = sorted((ROOT / "training").glob("*.py"))
    assert scripts
    for script in scripts:
        assert script.stem in runs, script
        assert len(script.read_text().splitlines()) < 150, script


def test_only_the_library_is_installed():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert config["options.packages.find"]["include"].split() == ["audio_tf*"]


@pytest.mark.parametrize("folder", ["layers", "attention", "models"])
def test_layers_and_models_import_no_backend(folder):
    for file in (ROOT / "audio_tf" / folder).rglob("*.py"):
        for node in import_statements(file):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module]
            for name in names:
                assert name.split(".")[0] not in {"tensorflow", "jax", "torch"}


def test_the_package_imports_without_tensorflow_code():
    """`import audio_tf` pulls in no tf.data, no export and no figures."""
    code = (
        "import sys, audio_tf; "
        "print([m for m in ('audio_tf.data', 'audio_tf.export', "
        "'audio_tf.analysis') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_machine_path_is_committed(files):
    pattern = re.compile(r"(?<![\w.])/(work|root|home)/\w")
    for name in files:
        if name.endswith((".py", ".md", ".cfg", ".toml", "Makefile", "run")):
            text = (ROOT / name).read_text()
            assert not pattern.search(text), name


def test_nothing_is_cited_that_a_reader_cannot_find(files):
    """Papers and public code are sources; our own notes and tasks are not."""
    notes = re.compile(r"\b(FAC[T]S|PEER[S]|DESIG[N]|STYL[E])\b|the issu[e]\b")
    for name in files:
        if name.endswith((".py", ".md", ".cfg", ".toml", "Makefile", "run")):
            found = notes.search((ROOT / name).read_text())
            assert found is None, (name, found)
