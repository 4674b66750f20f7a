"""Characters of pictures that no font has: boxes, which are told of once."""

import contextlib
import functools
import sys
import warnings


@contextlib.contextmanager
def boxes_said_once():
    """Says once that pictures have boxes for characters.

    Labels may be of a script that no font of matplotlib's settings has, which
    it warns of for each character of each picture. Other warnings of the
    block are given as ever.
    """
    with warnings.catch_warnings(record=True) as told:
        yield
    for each in told:
        if str(each.message).startswith("Glyph "):
            say_boxes()
        else:
            warnings.warn_explicit(
                each.message, each.category, each.filename, each.lineno
            )


@functools.cache
def say_boxes():
    """Says on the standard error that characters are drawn as boxes."""
    print(
        "pictures have boxes for characters that their font lacks; "
        "font.family in a matplotlibrc names other fonts",
        file=sys.stderr,
    )
