"""Inspection of a checkpoint's front end: figures, centres, one JSON."""

import typing

from audio_tf import files
from audio_tf.analysis import checkpoints, figures, filter_figures, filters
from audio_tf.layers.filters import Frontend
from audio_tf.ops.weights import weights_sha256

FILES = ("filters.png", "filters_in_time.png", "compression.png")
EXAMPLES = 12
BEFORE, AFTER = "before training", "after training"


class NothingLearned(ValueError):
    """A front end that has nothing to learn; the message names it."""


class States(typing.NamedTuple):
    """The filters and curves of a front end, before and after training.

    Attributes:
        filters: dict by name of `layers.filters.Filters`, in the order of
            time; empty without any.
        same_filters: bool, whether a filter of one state is the filter of the
            same index in the other.
        bands_hz: float array `(bands,)`, the middles of the bands, or `None`.
        curves: dict by name of a dict of curves, as `Learned` has it.
    """

    filters: dict
    same_filters: bool
    bands_hz: object
    curves: dict


def states(names, learned, same_filters=True, name_of_curves=None):
    """Makes `States` of one state, or of one before and one after training.

    Args:
        names: list of str, the names of the states.
        learned: list of `Learned`, one each.
        same_filters: bool, see `States`.
        name_of_curves: str, the name of the first state's curves if it is
            another than that of its filters.
    """
    *_, last = learned
    names_of_curves = [name_of_curves or names[0], *names[1:]]
    return States(
        {
            name: each.filters
            for name, each in zip(names, learned, strict=True)
            if last.filters is not None
        },
        same_filters,
        last.bands_hz,
        {
            name: each.curves
            for name, each in zip(names_of_curves, learned, strict=True)
        },
    )


def check_learns(backbone):
    """Returns what the front end of a backbone has learned.

    Args:
        backbone: `AudioBackbone`.

    Raises:
        NothingLearned: if it has nothing to learn, or cannot say what.
    """
    frontend = backbone.frontend
    if frontend is not None and not isinstance(frontend, Frontend):
        raise NothingLearned(
            "A front end says what it has learned as a "
            "`layers.filters.Frontend`. "
            f"Received: {type(frontend).__name__} of {type(backbone).__name__}"
        )
    learned = frontend and frontend.learned()
    if learned is None:
        name = "none" if frontend is None else type(frontend).__name__
        raise NothingLearned(
            "The front end has no learned filters. "
            f"Received: {name} of {type(backbone).__name__}"
        )
    return learned


def states_of(backbone, trained, before, seed):
    """Returns the front end of a model before and after training.

    Args:
        backbone: `AudioBackbone`.
        trained: bool, whether its weights are trained.
        before: what `checkpoints.load` takes, the model that training began
            with, or `None` for an untrained one of the same configuration.
        seed: int, the seed of weights that begin at random.

    Returns:
        `States`.

    Raises:
        NothingLearned: if a front end has nothing to learn.
        ValueError: if the two are not alike.
    """
    learned = check_learns(backbone)
    if before is not None:
        first, was_trained = checkpoints.load(before)
        earlier = check_learns(first)
        found, wanted = made_of(first, earlier), made_of(backbone, learned)
        if found != wanted:
            raise ValueError(
                "The model before training must have the same front end. "
                f"Received: {before} with {found}, beside {wanted}"
            )
        name = checkpoints.title_of(before, was_trained)
        # A legend leaves out a name that begins with an underscore.
        return states([f"before: {name}", AFTER], [earlier, learned])
    if not trained:
        return states(["untrained"], [learned])
    earlier, known = filters.at_first(backbone.frontend, seed)
    # What is learned for each band begins at constants.
    name = BEFORE if known else "untrained (drawn anew)"
    return states([name, AFTER], [earlier, learned], known, BEFORE)


def made_of(backbone, learned):
    """Returns what two front ends must share to be drawn over each other.

    Args:
        backbone: `AudioBackbone`.
        learned: `Learned` of its front end.

    Returns:
        Dict by name: the rate, the middles of the first and the last band,
        and shapes of what is learned.
    """
    of_filters = learned.filters and learned.filters.weights.shape
    bands = learned.bands_hz
    return {
        "sample_rate_hz": backbone.sample_rate_hz,
        "bands_hz": None if bands is None else bands[[0, -1]].round().tolist(),
        "filters": of_filters and tuple(of_filters),
        **{name: curve.shape for name, curve in learned.curves.items()},
    }


def inspect_frontend(checkpoint, folder, before=None, seed=0):
    """Writes figures and `frontend.json` of what a front end has learned.

    `filters.png` has the magnitude responses of the filters of the first
    learned layer, sorted by their peaks, with the mel scale laid over them;
    `filters_in_time.png` has some of the filters; `compression.png` what is
    learned for each mel band. What a front end does not have is left out.

    Args:
        checkpoint: as `checkpoints.load` takes it.
        folder: path that the files go to; made if missing.
        before: like `checkpoint`, the model that training began with, or
            `None` for an untrained one of the same configuration.
        seed: int, the seed of weights that begin at random.

    Returns:
        List of str, the names of the files.

    Raises:
        ImportError: if there is no matplotlib.
        NothingLearned: if the front end has nothing to learn.
        ValueError: if there is no such checkpoint, or the front end of
            `before` is another.
    """
    # Before the work, in case that there is no matplotlib.
    figures.new_figure(1, 1)
    backbone, trained = checkpoints.load(checkpoint)
    found = states_of(backbone, trained, before, seed)
    rate_hz = backbone.sample_rate_hz
    title = checkpoints.title_of(checkpoint, trained)
    drawn, content = draw(found, rate_hz, title)
    folder = figures.save_anew(drawn, folder, FILES)
    content = {
        "model": str(checkpoint),
        "weights_sha256": weights_sha256(backbone.weights),
        "trained": trained,
        "before": None if before is None else str(before),
        "frontend": type(backbone.frontend).__name__,
        **content,
    }
    files.write_json(folder / "frontend.json", content)
    return [*drawn, "frontend.json"]


def draw(states, sample_rate_hz, title):
    """Draws the figures of `inspect_frontend`, and gathers their numbers.

    Args:
        states: `States`.
        sample_rate_hz: int, the rate of the waveform.
        title: str, the title of the model.

    Returns:
        Pair of a dict of matplotlib figures by the names of their files, and
        of a dict that JSON can hold.
    """
    drawn, content = {}, {"filters": {}, "bands": {}}
    if states.filters:
        found = {
            name: filters.responses(each, sample_rate_hz)
            for name, each in states.filters.items()
        }
        *_, (last, learned) = states.filters.items()
        of_bands = learned.bands_hz is not None
        what = "filters over mel bands" if of_bands else "filters of samples"
        drawn["filters.png"] = filter_figures.draw_responses(
            found,
            sample_rate_hz,
            of_bands,
            f"{title}: the {len(learned.weights)} {what} of the front end",
        )
        shown = states.filters if states.same_filters else {last: learned}
        drawn["filters_in_time.png"] = filter_figures.draw_examples(
            shown,
            filters.examples(learned, found[last].order, EXAMPLES),
            found[last],
            sample_rate_hz,
            f"{title}: the strongest {what} by range of frequency",
        )
        for name, each in found.items():
            content["filters"][name] = {
                "centres_hz": each.centres_hz.tolist(),
                "bandwidths_hz": each.bandwidths_hz.tolist(),
            }
    if states.bands_hz is not None:
        drawn["compression.png"] = filter_figures.draw_curves(
            states.curves,
            states.bands_hz,
            f"{title}: what is learned for each mel band",
        )
        for name, curves in states.curves.items():
            content["bands"][name] = {
                curve: values.tolist() for curve, values in curves.items()
            }
    return drawn, content
