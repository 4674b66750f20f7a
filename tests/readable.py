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


def check_labelled(figure):
    """Every panel that has data says what runs along both of its axes.

    Rows that panels share are named by the first of them.
    """
    drawn = [
        panel
        for panel in figure.axes
        if panel.axison
        and panel.has_data()
        and panel.get_label() != "<colorbar>"
    ]
    assert drawn
    for panel in drawn:
        shared = panel.get_shared_x_axes()
        assert any(
            other.get_xlabel()
            for other in drawn
            if other is panel or shared.joined(panel, other)
        ), panel
        assert panel.get_title() or figure.get_suptitle(), panel
    first = drawn[0]
    assert first.get_ylabel() or any(
        label.get_text() for label in first.get_yticklabels()
    )


def check_legends_apart(figure):
    """No legend lies over a panel, nor beyond the picture."""
    canvas(figure).draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    width, height = figure.canvas.get_width_height()
    legends = [*figure.legends]
    legends += [panel.get_legend() for panel in figure.axes]
    legends = [legend for legend in legends if legend is not None]
    assert legends
    for legend in legends:
        box = legend.get_window_extent(renderer)
        assert box.x0 >= 0 and box.y0 >= 0
        assert box.x1 <= width and box.y1 <= height
        for panel in figure.axes:
            assert not box.overlaps(panel.bbox), legend
