"""The tables of faults fit the code; `make test-defects` plants them."""

import ast

import defects
import pytest


def test_every_fault_can_be_planted():
    """Whoever changes the code has to keep the tables up to date."""
    faults = defects.faults()
    names = [fault.name for fault in faults]
    assert len(set(names)) == len(names)
    for fault in faults:
        text = (defects.ROOT / fault.file).read_text()
        assert ast.parse(fault.planted(text)), fault.name


def test_every_fault_names_tests_that_are_there():
    functions = {}
    for fault in defects.faults():
        for selector in fault.tests:
            file, _, name = selector.partition("::")
            if file not in functions:
                tree = ast.parse((defects.ROOT / file).read_text())
                functions[file] = [
                    node.name
                    for node in tree.body
                    if isinstance(node, ast.FunctionDef)
                ]
            name = name.split("[")[0]
            assert any(
                each.startswith("test_") and each.startswith(name)
                for each in functions[file]
            ), (fault.name, selector)


def test_a_table_is_read_as_it_is_described():
    found = defects.read(
        "# Of lengths.\n"
        "@ audio_tf/ops/masks.py\n"
        "= a row is lost\n"
        "# Where lengths are equal.\n"
        "-     one\n"
        "-\n"
        "-   two\n"
        "+ three\n"
        "? ops/test_masks.py::test_a\n"
        "? ops/test_masks.py::test_b\n"
        "\n"
        "= a line is lost\n"
        "- one\n"
        "? ops/test_masks.py\n"
    )
    assert found == [
        defects.Fault(
            "a row is lost",
            "audio_tf/ops/masks.py",
            "    one\n\n  two",
            "three",
            (
                "tests/ops/test_masks.py::test_a",
                "tests/ops/test_masks.py::test_b",
            ),
        ),
        defects.Fault(
            "a line is lost",
            "audio_tf/ops/masks.py",
            "one",
            "",
            ("tests/ops/test_masks.py",),
        ),
    ]
    assert found[1].planted("0 one 2") == "0  2"
    for text in ("two", "one one"):
        with pytest.raises(ValueError, match="a line is lost: .*Received"):
            found[1].planted(text)
    with pytest.raises(ValueError, match="needs a file.*Received: None: .*a"):
        defects.read("= a\n- b\n? c")
    with pytest.raises(ValueError, match="no line of a fault.*'! d'"):
        defects.read("! d")
