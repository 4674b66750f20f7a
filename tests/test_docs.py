"""What the README and the pages of `docs/` say is so."""

import ast
import configparser
import contextlib
import importlib
import re
import runpy
import shlex

import numpy as np
import pages
import pytest
from repository import ROOT

from audio_tf import cli, console
from audio_tf.cli import export
from audio_tf.models import AudioClassifier
from audio_tf.ops.checks import closest
from audio_tf.runs import emotion, flags, fold_arrays, folds
from audio_tf.version import __version__

PAGES = {pages.name_of(page): page for page in pages.pages()}


class Parsed(BaseException):
    """The end of a command once its flags are known to be right."""


@pytest.fixture
def parsers(monkeypatch):
    """Commands end when their flags are parsed; the parsers that were used."""
    used = []
    parse = console.Parser.parse_args

    def parse_alone(self, *args, **kwargs):
        used.append(self)
        parse(self, *args, **kwargs)
        raise Parsed

    monkeypatch.setattr(console.Parser, "parse_args", parse_alone)
    return used


# Files whose docstrings are help texts, or tell how a script is run.
HELPS = [
    file
    for folder in (
        "audio_tf/cli",
        "audio_tf/runs",
        "training",
        "training/configs",
        "datasets",
    )
    for file in sorted((ROOT / folder).glob("*.py"))
]


@pytest.fixture
def checks(monkeypatch):
    """Commands end when their flags and settings are known to be right."""
    parse = console.Parser.parse_args

    def parse_alone(self, *args, **kwargs):
        arguments = parse(self, *args, **kwargs)
        if self.prog.split()[1] in cli.COMMANDS:
            raise Parsed
        return arguments

    @contextlib.contextmanager
    def end(*args, **kwargs):
        raise Parsed
        yield

    monkeypatch.setattr(console.Parser, "parse_args", parse_alone)
    # What a program does begins within it.
    monkeypatch.setattr(console, "errors_in_one_line", end)


def known_extras():
    """The names of the extras that `pip install` takes."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return set(setup["options.extras_require"])


def check(parsers, arguments):
    """Raises an error of the flags of `audio-tf ARGUMENTS`."""
    with contextlib.suppress(Parsed):
        cli.main(arguments)


def flags_of(parsers, command):
    """All flags of a command, also those of tables and commands of it."""
    inner = {
        "reproduce": ("reproduce", "TABLES"),
        "prepare": ("prepare_settings", "COMMANDS"),
    }
    parts = [[command]]
    if command in inner:
        file, names = inner[command]
        module = importlib.import_module(f"audio_tf.runs.{file}")
        parts = [[command, name] for name in getattr(module, names)]
    known = set()
    for arguments in parts:
        with contextlib.suppress(Parsed, SystemExit):
            cli.main(arguments)
        known |= set(parsers[-1].flags)
    return known | {"--help", "--debug", "--version"}


def test_links_lead_to_files_and_headings():
    cards = (ROOT / "audio_tf" / "saved_models").glob("*/README.md")
    for page in [*PAGES.values(), ROOT / "benchmarks" / "RESULTS.md", *cards]:
        name = pages.name_of(page)
        for target, anchor in pages.links(page):
            file = pages.source_of(page, target)
            assert file.exists(), (name, target)
            known = pages.anchors(file) if anchor else set()
            assert not anchor or anchor in known, (name, target, anchor)


def test_pictures_are_drawn_and_shown(parsers, capsys):
    """Each picture stands on a page, and its command has known flags."""
    drawn = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["PICTURES"]
    shown = [
        name
        for page in PAGES.values()
        for name in re.findall(r"<!-- picture: (\S+) ", page.read_text())
    ]
    assert sorted(shown) == sorted(drawn)
    for picture in drawn.values():
        program, *arguments = shlex.split(picture.command)
        assert program == "audio-tf"
        try:
            check(parsers, arguments)
        except SystemExit:
            pytest.fail(capsys.readouterr().err)


@pytest.mark.long
def test_pictures_show_something(tmp_path):
    """All commands run, and what they draw is no empty canvas."""
    runpy.run_path(str(ROOT / "docs" / "pictures.py"))["draw"](tmp_path)
    image = pytest.importorskip("matplotlib.image")
    found = {path.stem: path for path in tmp_path.glob("*.png")}
    assert len(found) == 6
    for name, path in found.items():
        colours = np.unique(image.imread(path)[..., :3].reshape(-1, 3), axis=0)
        assert len(colours) > 50, name


def test_blocks_are_python_commands_or_text():
    for name, page in PAGES.items():
        for block in pages.blocks(page):
            known = {"python", "shell", "text", ""}
            assert block.language in known, (name, block)
            assert block.text.strip(), name
            if block.language == "python":
                ast.parse(block.text)
            if block.language == "shell":
                first = pages.commands(block)[0][0]
                assert first in pages.PROGRAMS, (name, block.text)


def test_commands_have_these_flags(parsers, capsys, monkeypatch):
    """Whole commands are parsed; `make`, extras and scripts are looked up."""
    monkeypatch.chdir(ROOT)
    extras = configparser.ConfigParser()
    extras.read(ROOT / "setup.cfg")
    extras = set(extras["options.extras_require"])
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    seen = 0
    for name, page in PAGES.items():
        shells = [
            each for each in pages.blocks(page) if each.language == "shell"
        ]
        for block in shells:
            for program, *arguments in pages.commands(block):
                where, seen = (name, program, *arguments), seen + 1
                if program == "audio-tf":
                    try:
                        check(parsers, arguments)
                    except SystemExit as refused:
                        error = capsys.readouterr().err
                        assert refused.code == 0, (*where, error)
                elif program == "make":
                    goals = [each for each in arguments if "=" not in each]
                    assert set(goals) <= set(targets), where
                elif program == "pip":
                    asked = re.findall(r"\[([\w,]+)\]", " ".join(arguments))
                    asked = {e for each in asked for e in each.split(",")}
                    assert asked <= extras, where
                else:
                    files = [each for each in arguments if "/" in each]
                    assert all((ROOT / each).exists() for each in files), where
    assert seen > 30


def test_exports_are_not_refused():
    """No flag of them would be ignored, and each format can be quantized."""
    seen = 0
    for name, page in PAGES.items():
        for block in pages.blocks(page):
            if block.language != "shell":
                continue
            for program, *arguments in pages.commands(block):
                if [program, *arguments[:1]] != ["audio-tf", "export"]:
                    continue
                parser, seen = console.Parser(), seen + 1
                export.add(parser)
                try:
                    export.chosen_formats(parser.parse_args(arguments[1:]))
                except ValueError as error:
                    pytest.fail(f"{name}: {arguments}: {error}")
    assert seen > 3


def test_every_leg_of_the_tests_is_explained():
    """The table of the page on testing has a row of each target of `make`."""
    targets = re.findall(
        r"^(test[\w-]*):", (ROOT / "Makefile").read_text(), re.M
    )
    text = (ROOT / "docs" / "testing.md").read_text()
    rows = re.findall(r"^\| `make (test[\w-]*)", text, re.MULTILINE)
    assert sorted(set(rows)) == sorted(targets)


def test_every_extra_is_explained():
    """The table of the page on installing has a row, or a part of one."""
    text = (ROOT / "docs" / "install.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    named = re.findall(r"`(\w+)`", " ".join(rows))
    assert sorted(named) == sorted(known_extras())


def test_what_pages_include_is_there():
    """Sections of the figures, and classes and functions of files."""
    home = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    for name, page in PAGES.items():
        text = page.read_text()
        for heading in re.findall(r"<!-- figures: (.+?) -->", text):
            assert f"\n## {heading}\n" in home, (name, heading)
        for file, made in re.findall(r"<!-- code: (\S+) (\S+) -->", text):
            source = (ROOT / file).read_text()
            found = re.search(rf"^(class|def) {made}\b", source, re.MULTILINE)
            assert found, (name, file, made)


def test_what_pages_call_of_a_classifier_is_in_the_api():
    """Methods of its bases are shown where `mkdocs.yml` names them."""
    shown = re.search(
        r"inherited_members:\s+\[(.+?)\]", (ROOT / "mkdocs.yml").read_text()
    )
    called = {
        name
        for page in PAGES.values()
        for block in pages.blocks(page)
        for name in re.findall(r"\bclassifier\.(\w+)\(", block.text)
    }
    inherited = {
        name
        for base in AudioClassifier.__mro__[1:]
        if base.__module__.startswith("audio_tf.models")
        for name in vars(base)
    } - {*vars(AudioClassifier)}
    assert "explain" in called & inherited
    assert called & inherited <= {*shown[1].split(", ")}


def test_flags_in_prose_exist(parsers):
    """A flag beside its command is one of the command, else of any."""
    by_command = {
        command: flags_of(parsers, command)
        for command in {**cli.COMMANDS, **cli.RUNS}
    }
    anywhere = set().union(*by_command.values())
    for name, page in PAGES.items():
        for code in re.findall(r"`([^`\n]+)`", pages.prose(page)):
            known, command = anywhere, re.match(r"audio-tf (\w+)", code)
            if command:
                assert command[1] in by_command, (name, code)
                known = by_command[command[1]]
            elif re.match(r"(make|docker|pip|jupytext|tensorboard)\b", code):
                continue
            for flag in re.findall(r"(?<!\S)--[\w-]+", code):
                assert flag in known, (name, code, closest(flag, known))


def test_flags_that_scripts_name_are_theirs(parsers):
    """A script is the command of its name, whose flags it tells of."""
    for script in sorted((ROOT / "training").glob("*.py")):
        known = flags_of(parsers, script.stem)
        told = ast.get_docstring(ast.parse(script.read_text()))
        for flag in re.findall(r"(?<!\S)--[\w-]+", told):
            assert flag in known, (script.name, flag, closest(flag, known))


def test_commands_of_help_texts_are_taken(checks, capsys, monkeypatch):
    """Flags and settings alike, but for files that a reader has to write."""
    monkeypatch.chdir(ROOT)
    wrong, seen = [], 0
    for file in HELPS:
        for words in pages.commands_told(file):
            configs = [each for each in words if each.endswith(".py")]
            there = all((ROOT / each).is_file() for each in configs)
            if "--resume" in words or not there:
                continue
            seen += 1
            try:
                check(None, words[1:])
            except SystemExit as refused:
                if refused.code:
                    wrong.append(f"{file.name}: {capsys.readouterr().err}")
    assert seen > 50
    assert not wrong, "".join(wrong)


def test_a_table_needs_no_model_that_was_not_trained():
    """Each row of `audio-tf compare` is trained by the config alone."""
    told = [words for file in HELPS for words in pages.commands_told(file)]
    configs = {
        words[words.index("--train-config") + 1]
        for words in told
        if words[1] == "compare"
    }
    there = [each for each in map(ROOT.joinpath, configs) if each.is_file()]
    assert len(there) >= 3
    for config in there:
        assert not runpy.run_path(str(config))["get_config"]().get("teachers")


def test_decoders_of_embedded_texts_have_folds(tmp_path):
    """What `audio-tf embed` writes has splits, and nobody who speaks."""
    told = [words for file in HELPS for words in pages.commands_told(file)]
    for page in PAGES.values():
        for block in pages.blocks(page):
            if block.language == "shell":
                told += pages.commands(block)
    file, seen = tmp_path / "embeddings.npz", 0
    np.savez(
        file,
        embeddings=np.zeros((6, 3, 4), "float32"),
        labels=np.array(["a", "b"] * 3),
        splits=np.array(["train", "train", "val", "val", "test", "test"]),
    )
    for words in told:
        if words[1:2] == ["emotion"] and "--embeddings" in words:
            settings = flags.parse(emotion.EmotionSettings, "", words[2:])
            folds.make(fold_arrays.read_arrays(file), settings)
            seen += 1
    assert seen >= 3


def test_quoted_figures_are_measured():
    """A figure of three decimals has one home, with the command beside it."""
    home = ROOT / "benchmarks" / "RESULTS.md"
    measured = set(re.findall(r"\b\d\.\d{3}\b", home.read_text()))
    for name, page in PAGES.items():
        quoted = set(re.findall(r"\b\d\.\d{3}\b", pages.prose(page)))
        assert quoted <= measured, (name, quoted - measured)


def test_the_version_is_one():
    """The citation and the newest entry of the changes have the package's."""
    cited = (ROOT / "CITATION.cff").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {__version__}\n" in cited
    assert re.search(r"^## (\S+)", changes, re.M)[1].strip(",") == __version__
