"""The examples in docstrings run, and print what they say."""

import ast
import doctest
import importlib
import re

import keras
import pytest
from test_docstrings import FOUND, LIBRARY

if keras.backend.backend() != "tensorflow":
    pytest.skip("some read files through tf.data", allow_module_level=True)

# Pairs of file and name with lines that begin with `>>>`.
WITH_EXAMPLES = [
    tuple(place.split(": "))
    for place, _, _, text in FOUND
    if text and ">>>" in text
]
FILES = sorted({file for file, _ in WITH_EXAMPLES})


def module_of(file):
    """Imports the module that a file of the library is."""
    name = ".".join(["audio_tf", *file.removesuffix(".py").split("/")])
    return importlib.import_module(name.removesuffix(".__init__"))


def test_all_examples_are_found():
    """They stand in docstrings, where the site and the tests look."""
    text = "".join(file.read_text() for file in LIBRARY.rglob("*.py"))
    written = len(re.findall(r"^ +>>> ", text, re.MULTILINE))
    parser = doctest.DocTestParser()
    found = [text for _, _, _, text in FOUND if text and ">>>" in text]
    assert sum(len(parser.get_examples(each)) for each in found) == written
    assert len(found) >= 25


@pytest.mark.long
@pytest.mark.parametrize("file", FILES)
def test_the_examples_of_a_module(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = module_of(file)
    runner = doctest.DocTestRunner()
    for where, name in WITH_EXAMPLES:
        if where == file:
            text = getattr(module, name).__doc__
            parser = doctest.DocTestParser()
            runner.run(parser.get_doctest(text, {}, name, file, 0))
    assert runner.tries > 0 and runner.failures == 0


def test_python_in_docstrings_is_python():
    """Of lines that need files or servers, the syntax is all that is held."""
    for place, _, _, text in FOUND:
        for block in re.findall(r"```python\n(.*?)```", text or "", re.S):
            ast.parse(block)
            assert place
