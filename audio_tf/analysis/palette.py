"""Colours, markers and lines of all figures, for the colour-blind too.

The colours are those of Okabe and Ito ("Color Universal Design", 2008) without
yellow, which is too light on white. Nothing is told by colour alone: what has
a colour of its own has a marker or a line of its own, too.
"""

BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY, BLACK = "#CC79A7", "#E69F00", "#56B4E9", "#000000"
COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, BLACK)
GREY = "0.45"
MARKERS = "os^vDPX*"
# Of values from a smallest to a largest one, lighter or darker throughout.
SEQUENTIAL = "viridis"
WEIGHTS = "magma"
COUNTS = "Blues"
# Of values to both sides of zero.
DIVERGING = "PuOr"


def mark(number):
    """Returns the colour and the marker of one of several things.

    Args:
        number: int, which thing, from 0. The first 56 marks differ.

    Returns:
        Pair of a colour and a marker.
    """
    return COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]


def ordered(count):
    """Returns marks of things that have an order, from dark to light.

    Args:
        count: int, how many things there are.

    Returns:
        List of pairs of a colour and a marker.
    """
    import matplotlib

    shades = matplotlib.colormaps[SEQUENTIAL]
    # The lightest shades are too light on white.
    steps = [0.85 * place / max(count - 1, 1) for place in range(count)]
    return [
        (shades(step), MARKERS[place % len(MARKERS)])
        for place, step in enumerate(steps)
    ]
