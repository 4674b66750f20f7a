"""The lines of the tables of corpora: a reader, its options, its meaning.

A table of corpora is a dict of `Layout` by name, see `tables`. Choices, help
texts and the check of what was given are all made from it.
"""

import dataclasses
import inspect
import pathlib
import typing

from audio_tf.audio import packed
from audio_tf.audio.audio_files import is_folder
from audio_tf.corpora.protocols import Protocol
from audio_tf.ops.checks import closest, reject_unknown


@dataclasses.dataclass(frozen=True)
class Layout:
    """One way in which a corpus lies on disk.

    Attributes:
        read: function of `data_dir` and, by keyword, of further options, that
            returns a dict of `Corpus` by split. It decodes nothing.
        meaning: str, what lies where, in a few words for help texts.
        makes_its_own: bool, whether `read` writes the corpus where it is
            missing, so that nobody has to name a folder.
        marks: tuple of paths in the folder, any of which tells that a folder
            has this layout; empty if none does.
        protocol: `Protocol`, the official splits, or `None` of a corpus whose
            authors have not split it.

    Examples:
        >>> from audio_tf import corpora
        >>> layout = corpora.CORPORA["fsd50k"]
        >>> layout.meaning
        'FSD50K as released, its folders or their archives'
        >>> layout.marks
        ('FSD50K.ground_truth',)
    """

    read: typing.Callable
    meaning: str
    makes_its_own: bool = False
    marks: tuple = ()
    protocol: Protocol | None = None

    @property
    def takes(self):
        """The names of the options of `read`, a tuple of all but its first."""
        return tuple(inspect.signature(self.read).parameters)[1:]

    def marked(self, data_dir):
        """Returns whether a folder has a mark of this layout in it."""
        return any(
            (pathlib.Path(data_dir) / mark).exists()
            or is_folder(pathlib.Path(data_dir) / mark)
            for mark in self.marks
        )


def find(layouts, dataset):
    """Returns the `Layout` of a name.

    Raises:
        ValueError: if there is none; it names the nearest.
    """
    if dataset not in layouts:
        raise ValueError(
            f"`dataset` must be one of {sorted(layouts)}"
            f"{closest(dataset, layouts)}. Received: dataset={dataset!r}"
        )
    return layouts[dataset]


def detect(layouts, data_dir):
    """Returns the name of the layout that a folder has, by its marks.

    Args:
        layouts: dict of `Layout` by name.
        data_dir: path of the folder, or of a build for TFDS, see `resolve`.

    Raises:
        FileNotFoundError: if there is no such folder.
        ValueError: if it has the marks of none.
    """
    data_dir = pathlib.Path(data_dir)
    if not data_dir.is_dir():
        raise FileNotFoundError(f"{data_dir}: no such folder")
    for name, layout in layouts.items():
        if layout.marked(data_dir):
            return name
    build = packed.find_build(data_dir)
    of_build = packed.open_build(build).facts["layouts"] if build else ()
    for name in of_build:
        if name in layouts:
            return name
    raise ValueError(
        f"{data_dir}: the folder has no layout of {list(layouts)} that can be "
        "told by its lists and folders; name it as `dataset`"
    )


def resolve(layouts, dataset, data_dir):
    """Returns the folder that the reader of a layout is given.

    Args:
        layouts: dict of `Layout` by name.
        dataset: str, the name.
        data_dir: path of the folder, or of the file where the layout is one.
            If it is a corpus that `audio-tf build` built, or holds such and
            not the release, the release's lists in there are what is read.

    Returns:
        `pathlib.Path`.
    """
    data_dir = pathlib.Path(data_dir)
    layout = find(layouts, dataset)
    if not layout.marks or not data_dir.is_dir() or layout.marked(data_dir):
        return data_dir
    build = packed.find_build(data_dir, dataset)
    return data_dir if build is None else build / packed.RELEASE


def takers(layouts, option):
    """Lists the names of the layouts that take an option, in table order."""
    return [name for name in layouts if option in layouts[name].takes]


def describe(layouts):
    """Returns one text with the name and the meaning of each layout."""
    return "; ".join(
        f"{name}: {layout.meaning}" for name, layout in layouts.items()
    )


def load(layouts, dataset, data_dir, options):
    """Reads a corpus by the name of its layout.

    Args:
        layouts: dict of `Layout` by name.
        dataset: str, the name.
        data_dir: path of the folder, or of the file where the layout is one;
            see `resolve`.
        options: dict of further arguments of the layout's reader.

    Returns:
        Dict of `Corpus` by split.

    Raises:
        TypeError: if no layout takes one of the options.
        ValueError: if there is no such layout, or it does not take an option
            that others take.
    """
    layout = find(layouts, dataset)
    known = {name for each in layouts.values() for name in each.takes}
    reject_unknown(
        f"The layout {dataset!r}",
        [name for name in options if name not in known],
        layout.takes,
        # It may be meant for another layout, as is told of known ones below.
        lambda name, _: closest(name, known),
    )
    for name, value in options.items():
        if name not in layout.takes:
            raise ValueError(
                f"`{name}` does not apply to the layout {dataset!r}, but to "
                f"{takers(layouts, name)}. Received: {name}={value!r}"
            )
    return layout.read(resolve(layouts, dataset, data_dir), **options)
