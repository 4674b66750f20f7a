"""Titles of figures, on as many lines as they need."""

import textwrap

# Of a character on average, as a share of the size of its font.
CHARACTER = 0.62
POINTS_PER_INCH = 72


def set_title(figure, title, fontsize=10):
    """Sets the title of a figure, broken where the figure has no more room.

    Titles name folders of any length, and what follows the name, such as the
    accuracy, would be cut off with it. A dollar sign begins no formula.

    Args:
        figure: matplotlib `Figure`.
        title: str; its lines stay lines.
        fontsize: float, points.
    """
    room = POINTS_PER_INCH * figure.get_figwidth() / (CHARACTER * fontsize)
    lines = [textwrap.fill(line, int(room)) for line in title.split("\n")]
    figure.suptitle("\n".join(lines), fontsize=fontsize, parse_math=False)
