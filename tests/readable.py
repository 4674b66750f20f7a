"""Whether a stranger could read the texts of a figure."""


def boxes(figure, texts):
    """Bounding boxes of texts as they are drawn, in pixels."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    return [text.get_window_extent(renderer) for text in texts]


def canvas(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    figure.set_dpi(120)
    return figure


def check_readable(figure, texts):
    """No two of the texts overlap, and none leaves the picture."""
    found = boxes(canvas(figure), texts)
    width, height = figure.canvas.get_width_height()
    for index, box in enumerate(found):
        assert box.x0 >= 0 and box.y0 >= 0, texts[index]
        assert box.x1 <= width and box.y1 <= height, texts[index]
        for other in found[:index]:
            assert not box.overlaps(other), texts[index]
