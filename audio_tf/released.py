"""Released presets: trained models that come with the package, by name.

A folder of released presets has a folder for each, with the files that
`save_to_preset` writes, `provenance.json` and a model card, and `index.json`,
which says of each how it was made and which bytes its files must have. The
package's own is `ROOT`; `models.register_released` makes others known.

Nothing here imports Keras or TensorFlow.
"""

import dataclasses
import hashlib
import json
import pathlib
import re

from audio_tf import files
from audio_tf.ops.checks import reject_unknown

ROOT = pathlib.Path(__file__).parent / "saved_models"
INDEX = "index.json"
# How files of weights end, Keras' own and published ones.
WEIGHTS = (".h5", ".safetensors", ".bin")
# Of one preset: a wheel and a clone should stay small.
MAX_BYTES = 8_000_000

# Dict by name of the released presets that `models` can load.
RELEASED = {}


@dataclasses.dataclass(frozen=True)
class Metric:
    """A figure of merit with its interval.

    Attributes:
        name: str, what the figure is.
        value: float, the figure.
        interval: list of two floats, the bounds of its 95 % interval.
        clips: int, the number of clips that it was measured on.
    """

    name: str
    value: float
    interval: list
    clips: int

    def __str__(self):
        low, high = self.interval
        return (
            f"{self.name} {self.value:.3f} [{low:.3f}, {high:.3f}] on "
            f"{self.clips} clips"
        )


@dataclasses.dataclass(frozen=True)
class Released:
    """The entry of a released preset in the index.

    Attributes:
        name: str, the name that `from_preset` takes.
        folder: `pathlib.Path`, where its files are.
        model: str, the class that loads it, by Keras' registered name, such
            as `"audio_tf>AudioClassifier"`. The key in the file is `"class"`.
        backbone: str, the class of its backbone, by the registered name.
        description: str, what the model is for, in one sentence.
        corpus: str, the corpus that it was trained on.
        split: str, the split that its figure was measured on.
        command: str, the command that trained it.
        seed: int, the seed of the training.
        metric: `Metric` on the split.
        licence: str, the licence of the corpus.
        parameters: int, the number of weights.
        size_bytes: int, the bytes of all its files.
        files: dict of the SHA-256 of each file by its name.
    """

    name: str
    folder: pathlib.Path
    model: str
    backbone: str
    description: str
    corpus: str
    split: str
    command: str
    seed: int
    metric: Metric
    licence: str
    parameters: int
    size_bytes: int
    files: dict

    def verify(self):
        """Checks that every file is there, with the bytes of the release.

        Raises:
            ValueError: if one is missing or damaged; it names the file.
        """
        for name, expected in self.files.items():
            path = self.folder / name
            if not path.is_file():
                raise ValueError(
                    f"The released preset {self.name!r} is incomplete: "
                    f"{path} is missing"
                )
            found = checksum(path)
            if found != expected:
                raise ValueError(
                    f"The released preset {self.name!r} is damaged: {path} "
                    f"must have the SHA-256 {expected}. Received: {found}"
                )

    def to_json(self):
        """Returns the entry of the index, a dict that JSON can hold."""
        entry = dataclasses.asdict(self)
        del entry["name"], entry["folder"]
        return {"class": entry.pop("model"), **entry}


# The keys of an entry in the file.
KEYS = [
    {"model": "class"}.get(field.name, field.name)
    for field in dataclasses.fields(Released)[2:]
]


def checksum(path):
    """Returns the SHA-256 of a file as hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_index(root):
    """Reads which presets a folder holds, without opening their files.

    Args:
        root: the folder.

    Returns:
        Dict of `Released` by name, empty if there is no `index.json`.

    Raises:
        ValueError: if `index.json` is no JSON, or an entry lacks something or
            has too much; it names the file.
    """
    root = pathlib.Path(root)
    path = root / INDEX
    if not path.is_file():
        return {}
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
        return {
            check_name(name): from_json(name, root / name, entry)
            for name, entry in index.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no index of presets: {error}") from error


def from_json(name, folder, entry):
    """Makes a `Released` of an entry of the index."""
    reject_unknown(name, entry, KEYS)
    missing = [key for key in KEYS if key not in entry]
    if missing:
        raise ValueError(
            f"{name!r} must have all of {KEYS}. Received: without {missing}"
        )
    entry = {**entry, "metric": Metric(**entry["metric"])}
    return Released(name, folder, entry.pop("class"), **entry)


def check_name(name):
    """Returns a name that can be a preset's.

    Raises:
        ValueError: if it is no lower-case word of letters, digits and
            underscores, and could be mistaken for a path or an address.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(
            "The name of a preset must be lower-case letters, digits and "
            f"underscores. Received: {name!r}"
        )
    return name


def add(folder, **facts):
    """Enters a folder that has been written into the index beside it.

    Args:
        folder: the folder of the preset, whose name is the preset's.
        **facts: the fields of `Released` beyond its name, its folder, its
            size and its files. An earlier entry of that name is replaced.

    Returns:
        The `Released`.

    Raises:
        ValueError: if the files are larger than `MAX_BYTES` together.
    """
    folder = pathlib.Path(folder)
    paths = check_size(folder)
    new = Released(
        name=check_name(folder.name),
        folder=folder,
        size_bytes=sum(path.stat().st_size for path in paths),
        files={
            path.relative_to(folder).as_posix(): checksum(path)
            for path in paths
        },
        **facts,
    )
    listed = {**read_index(folder.parent), new.name: new}
    files.write_json(
        folder.parent / INDEX,
        {name: listed[name].to_json() for name in sorted(listed)},
    )
    return new


def check_size(folder):
    """Lists the files of a preset, if they are not too large together.

    Args:
        folder: `pathlib.Path` of the preset.

    Returns:
        Sorted list of paths.

    Raises:
        ValueError: if they have `MAX_BYTES` or more.
    """
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in paths)
    if size >= MAX_BYTES:
        largest = max(paths, key=lambda path: path.stat().st_size)
        raise ValueError(
            f"A released preset must be smaller than {MAX_BYTES / 1e6:g} MB. "
            f"Received: {size / 1e6:.2f} MB in {folder}, of which "
            f"{largest.stat().st_size / 1e6:.2f} MB are {largest.name}"
        )
    return paths


def folder_of(preset):
    """Returns the folder of a released preset by its name.

    Anything else, a folder or an address, is returned as it is.
    """
    found = RELEASED.get(str(preset))
    return preset if found is None else found.folder


def weights_mark(preset):
    """Returns a mark that tells a preset from one that took its place.

    Args:
        preset: str, the name of a released preset, a folder or an address.

    Returns:
        Str, a checksum of the weights' files in its folder; `None` of a size,
        or of a preset that is not on this machine.
    """
    folder = pathlib.Path(folder_of(preset))
    weights = sorted(
        path for path in folder.glob("*") if path.suffix in WEIGHTS
    )
    sums = "".join(map(checksum, weights))
    return hashlib.sha256(sums.encode()).hexdigest() if weights else None
