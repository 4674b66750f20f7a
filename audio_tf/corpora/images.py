"""Images with labels: CIFAR's released batches, or folders of classes.

CIFAR's batches are pickles, which could run code. Here nothing of them is
called: stand-ins take the place of numpy's classes, and any other name is
refused.
"""

import pathlib
import pickle

import numpy as np

from audio_tf.audio.audio_files import files_below
from audio_tf.corpora.class_folders import check_no_splits
from audio_tf.corpora.corpus import SPLITS
from audio_tf.corpora.examples import Examples, source

SIDE = 32
PIXELS = 3 * SIDE * SIDE
SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")


class Kind:
    """The place of a `numpy.dtype` in a pickle, whose name is kept.

    Args:
        name: bytes or str, such as `b"u1"`.
        *further: what numpy wants to know beside, which is passed over.
    """

    def __init__(self, name=None, *further):
        del further
        self.name = text(name)

    def __setstate__(self, state):
        del state


class Stored:
    """The place of a `numpy.ndarray` in a pickle, whose bytes are kept.

    Args:
        *initial: what numpy is called with, which is passed over.
    """

    def __init__(self, *initial):
        del initial
        self.state = None

    def __setstate__(self, state):
        self.state = state

    def images(self):
        """Returns uint8 images `(count, 32, 32, 3)`.

        Raises:
            ValueError: if these are no bytes of so many pixels.
        """
        _, shape, kind, by_column, content = self.state
        fits = kind.name == "u1" and not by_column and shape[1:] == (PIXELS,)
        if not fits or len(content) != shape[0] * PIXELS:
            raise ValueError(
                f"must be bytes of (images, {PIXELS}). Received: "
                f"{kind.name}, shape={shape}, {len(content)} bytes"
            )
        pixels = np.frombuffer(content, "uint8").reshape(-1, 3, SIDE, SIDE)
        return pixels.transpose(0, 2, 3, 1)


def encoded(characters, encoding):
    """Returns the bytes that Python 3 has written as characters."""
    if encoding != "latin1":
        raise ValueError(f"an encoding that is not latin1: {encoding!r}")
    return characters.encode("latin1")


KNOWN = {
    ("numpy.core.multiarray", "_reconstruct"): Stored,
    ("numpy._core.multiarray", "_reconstruct"): Stored,
    ("numpy", "ndarray"): Stored,
    ("numpy", "dtype"): Kind,
    ("_codecs", "encode"): encoded,
}


class Unpickler(pickle.Unpickler):
    """An unpickler of lists, texts and arrays that calls nothing of numpy."""

    def find_class(self, module, name):
        """Returns what stands for a class of the pickle.

        Raises:
            ValueError: if it is none that CIFAR's batches have.
        """
        if (module, name) not in KNOWN:
            raise ValueError(f"a batch must not name {module}.{name}")
        return KNOWN[module, name]


def text(value):
    """Returns a text that Python 2 may have written as bytes."""
    return value.decode("utf-8") if isinstance(value, bytes) else value


def read_batch(path):
    """Reads a pickled dict of CIFAR, without running anything of it.

    Args:
        path: the file.

    Returns:
        Dict by name; arrays are `Stored`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is something else, or names something to be called.
    """
    try:
        with open(path, "rb") as file:
            found = Unpickler(file, encoding="bytes").load()
        return {text(name): value for name, value in found.items()}
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    except Exception as error:
        raise ValueError(
            f"{path}: must be a batch of CIFAR for Python. "
            f"Received: {type(error).__name__}: {error}"
        ) from error


def read_cifar(data_dir, batches, meta, labels_key, names_key):
    """Reads batches of CIFAR.

    Args:
        data_dir: the folder of the batches.
        batches: dict by split of the names of its files.
        meta: str, the file with the names of the classes.
        labels_key: str, the labels in a batch.
        names_key: str, the names in `meta`.

    Returns:
        `Examples`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is not as released.
    """
    data_dir = pathlib.Path(data_dir)
    names = {meta: read_batch(data_dir / meta)}
    known = [text(each) for each in names[meta].get(names_key, [])]
    images, labels, splits, rows, sources = [], [], [], [], {}
    for split, files in batches.items():
        for name in files:
            path = data_dir / name
            batch = read_batch(path)
            try:
                found = batch["data"].images()
                chosen = [known[number] for number in batch[labels_key]]
                if len(chosen) != len(found) or min(batch[labels_key]) < 0:
                    raise ValueError(
                        f"{len(chosen)} labels of {len(found)} images"
                    )
            except Exception as error:
                raise ValueError(
                    f"{path}: must have `data` and `{labels_key}`, of classes "
                    f"in {meta}. Received: {sorted(batch)} "
                    f"({type(error).__name__}: {error})"
                ) from error
            images.append(found)
            labels += chosen
            splits += [split] * len(found)
            rows += [f"{name}, image {number}" for number in range(len(found))]
            sources[name] = source(path)
    sources[meta] = source(data_dir / meta)
    return Examples(
        "image", np.concatenate(images), labels, splits, rows, sources
    ).check(data_dir)


def read_cifar10(data_dir):
    """Reads CIFAR-10 as released for Python, `cifar-10-batches-py`.

    Args:
        data_dir: the folder with `batches.meta`.

    Returns:
        `Examples`. Errors are those of `read_cifar`.
    """
    return read_cifar(
        data_dir,
        {
            "train": [f"data_batch_{number}" for number in range(1, 6)],
            "test": ["test_batch"],
        },
        "batches.meta",
        "labels",
        "label_names",
    )


def read_cifar100(data_dir):
    """Reads CIFAR-100 as released for Python, its 100 fine classes.

    Args:
        data_dir: the folder `cifar-100-python` with `meta`.

    Returns:
        `Examples`. Errors are those of `read_cifar`.
    """
    return read_cifar(
        data_dir,
        {"train": ["train"], "test": ["test"]},
        "meta",
        "fine_labels",
        "fine_label_names",
    )


def decode_image(path):
    """Decodes a BMP, GIF, JPEG or PNG file; of a GIF the first picture.

    Args:
        path: the file.

    Returns:
        Uint8 array `(height, width, 3)`.

    Raises:
        ValueError: if it is none of these.
        OSError: if it cannot be read.
    """
    import tensorflow as tf

    try:
        return tf.io.decode_image(
            pathlib.Path(path).read_bytes(),
            channels=3,
            expand_animations=False,
        ).numpy()
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(f"no image ({error.message[:80]})") from error


def read_image_folders(data_dir):
    """Reads a folder per class, or train, val and test folders of such.

    Files of other suffixes than those of images are passed over; an image
    that is bad is found when it is decoded.

    Args:
        data_dir: the folder. It is one of splits if `train` in it has folders
            with images; else all is train.

    Returns:
        `Examples`.

    Raises:
        FileNotFoundError: if there is no such folder.
        ValueError: if there are no images, some are in no folder of a class
            or of a split, or splits have other names, such as `Train`.
    """
    data_dir = pathlib.Path(data_dir)
    if not data_dir.is_dir():
        raise FileNotFoundError(f"{data_dir}: no such folder")
    paths = sorted(
        path
        for path in files_below(data_dir)
        if path.suffix.lower() in SUFFIXES and path.is_file()
    )
    parts = [path.relative_to(data_dir).parts for path in paths]
    split = any(len(each) > 2 and each[0] == "train" for each in parts)
    if not split:
        check_no_splits(
            data_dir,
            {each[0] for each in parts if len(each) > 2},
            {each[0] for each in parts},
        )
    for path, each in zip(paths, parts, strict=True):
        if len(each) < 2 + split or (split and each[0] not in SPLITS):
            raise ValueError(
                f"{data_dir}: images must be in folders of classes"
                f"{f', in {SPLITS}' if split else ''}. Received: {path}"
            )
    return Examples(
        "image",
        paths,
        [each[split] for each in parts],
        [each[0] if split else "train" for each in parts],
        [str(path) for path in paths],
        {
            path.relative_to(data_dir).as_posix(): [path.stat().st_size]
            for path in paths
        },
        decode_image,
    ).check(data_dir)
