"""Text for a person at a terminal."""

from audio_tf import terminal
from audio_tf.cli import build
from audio_tf.corpora import leaks


def test_few_of_many_names_are_told():
    names = list("abcdef")
    assert terminal.first_names(names[:5]) == "a, b, c, d, e"
    assert terminal.first_names(names) == "a, b, c, d, e and 1 more"
    assert terminal.first_names(names[:5], 7) == "a, b, c, d, e and 2 more"
    assert terminal.first_names(["a\nb\x1b"]) == r"a\nb\x1b"
    assert terminal.first_names([]) == ""


def test_names_in_quotes_may_have_commas():
    assert terminal.first_quoted(["Bark, dog", "it's"]) == (
        "'Bark, dog', \"it's\""
    )
    assert terminal.first_quoted(map(str, range(6))).endswith("'4' and 1 more")
    assert terminal.first_quoted({}) == "none"


def test_names_of_what_is_built_and_shared_steer_no_terminal(capsys):
    facts = {
        "left_out": {"a\x1b[31m\nb.wav": "cut \x07off"},
        "complete": True,
        "checksums": [],
    }
    assert build.report_facts(facts, "to") == 1
    files = ("a\x1b.wav", "b\n.wav")
    print(leaks.Leak("audio", ("train", "test"), 1, 2, files))
    told = capsys.readouterr().out.splitlines()
    assert told == [
        r"left out: a\x1b[31m\nb.wav: cut \x07off",
        "to: complete",
        r"a\x1b.wav in train and b\n.wav in test have the same audio, as 2 "
        "clips of test have",
    ]
