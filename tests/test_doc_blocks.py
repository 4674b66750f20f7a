"""Every block of Python in the README and on the pages runs.

The blocks of a page run in order, in one namespace and one folder, which has a
few sounds, a trained model and its export: see `place`.
"""

import ast
import builtins
import re

import keras
import numpy as np
import pages
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("files are read through tf.data", allow_module_level=True)

import tiny

from audio_tf import export
from audio_tf.models import AudioClassifier

PAGES = {
    pages.name_of(page): [
        block for block in pages.blocks(page) if block.language == "python"
    ]
    for page in pages.pages()
}
# The README and the page on training have tests of their own below.
ELSEWHERE = ("README.md", "docs/train.md")
OTHERS = sorted(name for name in PAGES if PAGES[name] and name not in ELSEWHERE)


def sounds(folder):
    """Writes three clips each of two classes, and single files."""
    rng = np.random.default_rng(0)
    names = ["some.wav", "seven.wav"]
    for label in ("dog", "rain"):
        for number in range(3):
            names.append(f"sounds/{label}/{number}.wav")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        samples = 0.1 * rng.standard_normal(9_001)
        soundfile.write(folder / name, samples, 16_000)


@pytest.fixture
def place(tmp_path, monkeypatch, eager_models):
    """The folder that a page's blocks run in; models run without graphs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUDIO_TF_CACHE", str(tmp_path / "cache"))
    sounds(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The export of a tiny classifier of dogs and rain."""
    folder = tmp_path_factory.mktemp("exported") / "audio_tf"
    model = AudioClassifier(
        tiny.backbone(), labels=["dog", "rain"], chunk_s=0.5
    )
    export.export(model, folder)
    return folder


def run(block, namespace):
    """Runs a block; of what needs a server or a download, its imports."""
    tree = ast.parse(re.sub(r"epochs=\d+", "epochs=1", block.text))
    if block.needs:
        tree.body = [
            node
            for node in tree.body
            if isinstance(node, (ast.Import, ast.ImportFrom))
        ]
        assert tree.body, block
    exec(compile(tree, "page", "exec"), namespace)


def run_page(name):
    namespace = {"__builtins__": builtins, "__name__": "page"}
    for block in PAGES[name]:
        run(block, namespace)


def test_the_lines_of_the_readme_run(place):
    """They train on a folder per class, and save."""
    run_page("README.md")
    assert (place / "my_sounds" / "task.json").is_file()
    saved = AudioClassifier.from_preset("my_sounds")
    assert saved.labels == ["dog", "rain"]


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_the_blocks_of_a_page_run(name, place, exported, monkeypatch):
    if name == "docs/serve.md":
        (place / "models").mkdir()
        (place / "models" / "audio_tf").symlink_to(exported)
    run_page(name)


@pytest.mark.long
def test_what_the_page_on_training_prints(place, capsys):
    """One answer for one clip, a list for several; figures by name."""
    rain = "sounds/rain/0.wav"
    run_page("docs/train.md")
    printed = capsys.readouterr().out.splitlines()
    answers = [line for line in printed if line.startswith("{")]
    first, second, *_, figures = map(ast.literal_eval, answers)
    assert first.keys() == {"dog", "rain"} and second["file"] == rain
    assert figures.keys() == {"accuracy", "loss"}
    assert any(re.fullmatch(r"\(\d+,\)", line) for line in printed)
    assert printed[-1] == "(6, 2)"
