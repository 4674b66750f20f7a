"""Text for a person at a terminal."""

from audio_tf import terminal


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
