"""What the page's route for commands takes, and what its guard keeps off."""

import asyncio

import pytest

from audio_tf.app import server
from audio_tf.app.uploads import Uploads


def test_an_address_gives_model_and_top():
    assert server.read_query([]) == {}
    assert server.read_query([("top", "2"), ("model", "a")]) == {
        "top": 2,
        "model": "a",
    }


def test_an_address_says_each_thing_once():
    with pytest.raises(ValueError, match="'top' once. Received: top=2, top=3"):
        server.read_query([("top", "2"), ("model", "a"), ("top", "3")])


@pytest.mark.parametrize("top", ["x", "1.5", "", "9" * 5_000])
def test_a_top_that_is_no_number_is_named(top):
    with pytest.raises(ValueError, match="`top` must be an integer") as caught:
        server.read_query([("top", top)])
    assert len(str(caught.value)) < 300


def test_an_argument_that_is_not_known_is_named():
    with pytest.raises(TypeError, match="did you mean 'top'"):
        server.read_query([("topp", "2")])


def test_a_form_has_one_file_and_nothing_that_would_be_ignored():
    """`curl -F file=@a.wav -F model=b` had the answer of the first model."""
    sound = object()
    assert server.file_of([("file", sound)]) is sound
    for pairs, received in (
        ([], "the fields none"),
        ([("file", "dog.wav")], "the fields file"),
        ([("fil", sound)], "the fields fil"),
        ([("file", sound), ("file", "x")], "the fields file, file"),
        ([("file", sound), ("x\n", "1")], r"the fields file, x\\n"),
        ([("top", "1"), ("file", sound)], "the fields top, file"),
        ([("file", sound), ("model", "b")], "the fields file, model"),
    ):
        with pytest.raises(ValueError, match=f"one file.*: {received}$") as e:
            server.file_of(pairs)
        for name in ("top", "model"):
            told = f"`{name}` stands in the address" in str(e.value)
            assert told == (name in received)


@pytest.mark.parametrize("kind", ["http.disconnect", "http.request"])
def test_who_leaves_in_the_middle_of_an_upload_leaves_no_traceback(
    kind, tmp_path
):
    """Other errors are shown: nobody would look for them."""

    async def receive():
        return {"type": kind}

    async def application(scope, receive, send):
        raise OSError((await receive())["type"])

    guard = server.Guard(application, Uploads(tmp_path))
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/classify",
        "headers": [(b"host", b"localhost:7860")],
    }
    answered = guard(scope, receive, None)
    if kind == "http.disconnect":
        asyncio.run(answered)
    else:
        with pytest.raises(OSError, match=kind):
            asyncio.run(answered)


def test_no_address_of_gradio_gives_a_file_back(tmp_path):
    guard = server.Guard(None, Uploads(tmp_path))
    host = {"host": "127.0.0.1:7860"}
    for path, given in (
        ("/gradio_api/file=/tmp/a.wav", False),
        ("/gradio_api/file//tmp/a.wav", False),
        ("/gradio_api/queue/data", True),
        ("/samples/bell.wav", True),
    ):
        refused = ("the page gives no file back", 404)
        expected = (None, None) if given else refused
        assert guard.refusal("GET", path, host) == expected, path
