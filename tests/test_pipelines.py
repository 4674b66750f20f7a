"""What is common to the commands that run on Apache Beam, without it."""

import io
import threading

import pytest
import tqdm

from audio_tf import pipelines


@pytest.mark.parametrize("every_s", [0.0, 3600.0])
def test_a_bar_shows_what_others_have_done(every_s):
    """However seldom it looks, it has looked when the work is done."""
    there, seen, often = iter([3, None, None]), [], threading.Event()

    def look(bar):
        seen.append(bar.n)
        if len(seen) > 4:
            often.set()
        if (done := next(there, 7)) is None:
            raise OSError("the folder cannot be seen")
        bar.n = done

    terminal = io.StringIO()
    bar = tqdm.tqdm(total=7, file=terminal, mininterval=0)
    with pipelines.Watch(bar, look, every_s) as watch:
        assert seen[0] == 0 and "3/7" in terminal.getvalue()
        if every_s == 0.0:
            assert often.wait(60.0)
    assert not watch.is_alive()
    if every_s == 0.0:
        assert bar.n == 7 and "7/7" in terminal.getvalue()
    else:
        # The last look failed, which is no reason to fail.
        assert len(seen) == 2 and bar.n == 3
