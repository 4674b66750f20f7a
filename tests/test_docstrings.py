"""Docstrings of the library are whole sentences."""

import ast
import pathlib
import re

LIBRARY = pathlib.Path(__file__).resolve().parent.parent / "audio_tf"
# Keras says what these do, or Python.
HOOKS = {
    "build",
    "call",
    "compute_mask",
    "compute_output_shape",
    "compute_output_spec",
    "from_config",
    "get_config",
    "load_own_variables",
    "on_epoch_begin",
    "on_epoch_end",
    "on_train_begin",
    "on_train_end",
    "reset_state",
    "result",
    "save_own_variables",
    "update_state",
    "update_step",
}
# Openings that leave out the noun or the verb that is meant.
RIDDLES = re.compile(
    r"(What|Those|That|These|The same|As|Of|Like|Which|Whose|But|One that|"
    r"All that|All of|None|Also|And|How|Where|Why|When|Likewise)\b"
)
# A verb in the third person, and not a noun in the plural.
VERB = re.compile(r"(?!\w+s of\b)[A-Z][a-z-]*s\b")


def named(node, prefix=""):
    """Yields dotted name and node of the public definitions below a node.

    Those within functions are left out.
    """
    for child in node.body:
        kinds = (ast.ClassDef, ast.FunctionDef)
        if not isinstance(child, kinds) or child.name.startswith("_"):
            continue
        yield prefix + child.name, child
        if isinstance(child, ast.ClassDef):
            yield from named(child, prefix=f"{prefix}{child.name}.")


def is_property(node):
    decorators = [ast.unparse(each) for each in node.decorator_list]
    return any("property" in each for each in decorators)


def definitions():
    """Yields file, name and node of all that has to have a docstring."""
    for file in sorted(LIBRARY.rglob("*.py")):
        tree = ast.parse(file.read_text())
        where = file.relative_to(LIBRARY)
        yield where, "", tree
        for name, node in named(tree):
            yield where, name, node


def summary(text):
    """The first paragraph of a docstring, in one line."""
    return " ".join(text.strip().split("\n\n")[0].split())


FOUND = [
    (f"{where}: {name}", name, node, ast.get_docstring(node))
    for where, name, node in definitions()
]


def test_everything_public_has_a_docstring():
    """Overrides mean what they mean in the base, attributes what it lists."""
    explained = {name.rpartition(".")[2] for _, name, _, text in FOUND if text}
    for _, _, node, text in FOUND:
        if text and isinstance(node, ast.ClassDef):
            explained |= set(re.findall(r"^\s*(\w+): ", text, re.MULTILINE))
            explained |= set(re.findall(r"^\s*- `(\w+)", text, re.MULTILINE))
    missing = [
        place
        for place, name, _, text in FOUND
        if not text
        and not ("." in name and name.rpartition(".")[2] in explained | HOOKS)
    ]
    assert not missing, "\n".join(missing)


def test_docstrings_are_sentences():
    wrong = []
    for place, _, _, text in FOUND:
        if not text:
            continue
        first = summary(text)
        whole = re.match(r"[A-Z0-9`'\"(]", first) and first[-1] in ".:?"
        if not whole or RIDDLES.match(first):
            wrong.append(f"{place}: {first}")
    assert not wrong, "\n".join(wrong)


def test_docstrings_of_functions_begin_with_a_verb():
    """`Returns`, `Reads`, ...: what a function does is a sentence then."""
    wrong = []
    for place, _, node, text in FOUND:
        if not text or not isinstance(node, ast.FunctionDef):
            continue
        first = summary(text)
        if not is_property(node) and not VERB.match(first):
            wrong.append(f"{place}: {first}")
    assert not wrong, "\n".join(wrong)
