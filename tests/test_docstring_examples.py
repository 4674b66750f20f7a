"""The examples in docstrings run, and print what they say."""

import ast
import doctest
import importlib
import inspect
import re

import keras
import pages
import pytest
from test_docstrings import FOUND, LIBRARY

import audio_tf

if keras.backend.backend() != "tensorflow":
    pytest.skip("some read files through tf.data", allow_module_level=True)

# Pairs of file and name with lines that begin with `>>>`.
WITH_EXAMPLES = [
    tuple(place.split(": "))
    for place, _, _, text in FOUND
    if text and ">>>" in text
]
# Modules that the site has a page of.
PUBLIC = [
    f"audio_tf.{name}" for name in audio_tf.__all__ if name != "__version__"
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


def exported(module):
    """The classes and functions of `__all__`; without it, those of the file."""
    module = importlib.import_module(module)
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
    ]
    values = [getattr(module, name) for name in getattr(module, "__all__", own)]
    return [
        value
        for value in values
        if inspect.isclass(value) or inspect.isfunction(value)
    ]


def test_everything_public_has_an_example():
    """Whoever looks up a name wants to see it in use."""
    without = []
    for module in PUBLIC:
        names = exported(module)
        assert names, module
        without += [
            f"{module}.{value.__name__}"
            for value in names
            if not re.search("^ *(>>> |```python$)", value.__doc__, re.M)
        ]
    assert not without, "\n".join(without)


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


def blocks():
    """Yields place and tree of the Python that needs files or servers."""
    for place, _, _, text in FOUND:
        for block in re.findall(r"```python\n(.*?)```", text or "", re.S):
            yield place, ast.parse(block)


def looked_up(place, node):
    """What a name or `audio_tf.x.y` in a docstring means, `None` if unknown."""
    if isinstance(node, ast.Name):
        if node.id == "audio_tf":
            return audio_tf
        if place.startswith("builders/"):
            return None  # TFDS may be missing.
        module = module_of(place.split(": ")[0])
        return getattr(module, node.id, None)
    if isinstance(node, ast.Attribute):
        owner = looked_up(place, node.value)
        return None if owner is None else getattr(owner, node.attr)
    return None


def is_there(name):
    """Tells if `audio_tf.x.y` is a module, or an attribute of one."""
    parts = name.split(".")
    if LIBRARY.parent.joinpath(*parts).with_suffix(".py").is_file():
        return True  # What it imports may be missing.
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def test_names_of_the_library_are_there():
    """Those that docstrings and pages tell of as `audio_tf.x.y`."""
    told = {place: text or "" for place, _, _, text in FOUND}
    told |= {pages.name_of(page): page.read_text() for page in pages.pages()}
    names = {
        (name, place)
        for place, text in told.items()
        for name in re.findall(r"\baudio_tf(?:\.[a-z]\w*)+", text, re.I)
        if not name.endswith(".json")
    }
    assert len(names) > 50
    wrong = [pair for pair in sorted(names) if not is_there(pair[0])]
    assert not wrong, "\n".join(map(" in ".join, wrong))


def test_python_in_docstrings_is_python():
    """Lines that need files or servers do not run: names are looked up."""
    called, wrong = 0, []
    for place, tree in blocks():
        for node in ast.walk(tree):
            function = looked_up(place, getattr(node, "func", node))
            if isinstance(node, ast.Call) and callable(function):
                names = [each.arg for each in node.keywords]
                signature = inspect.signature(function)
                called += 1
                try:
                    signature.bind(*node.args, **dict.fromkeys(names))
                except TypeError as error:
                    wrong.append(f"{place}: {error}")
    assert called >= 15
    assert not wrong, "\n".join(wrong)
