"""Weights that PyTorch has saved, read without PyTorch.

`torch.save` writes a zip archive since PyTorch 1.6: the dictionary as
`data.pkl` and the numbers of each tensor in a file of their own. Only what a
dictionary of tensors is made of is read; anything else in the pickle, which
could run code, is refused.
"""

import collections
import io
import pathlib
import pickle
import zipfile
import zlib

import ml_dtypes
import numpy as np

DTYPES = {
    "DoubleStorage": np.float64,
    "FloatStorage": np.float32,
    "HalfStorage": np.float16,
    "BFloat16Storage": ml_dtypes.bfloat16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ShortStorage": np.int16,
    "CharStorage": np.int8,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}


class Tensor:
    """A tensor of an archive, whose numbers are read when they are wanted.

    Args:
        archive: the `Archive` that it is in.
        storage: tuple, as PyTorch refers to the numbers of a tensor.
        offset: int, where it begins among them.
        shape: tuple of ints.
        strides: tuple of ints, numbers from one entry to the next by axis.
    """

    def __init__(self, archive, storage, offset, shape, strides):
        self.archive = archive
        self.storage = storage
        self.offset = offset
        self.shape = tuple(shape)
        self.strides = tuple(strides)

    def numpy(self):
        """Reads the tensor as an array."""
        _, kind, key, _, _ = self.storage
        numbers = np.frombuffer(self.archive.read(f"data/{key}"), DTYPES[kind])
        return np.lib.stride_tricks.as_strided(
            numbers[self.offset :],
            self.shape,
            [numbers.itemsize * stride for stride in self.strides],
            writeable=False,
        ).copy()


class Unpickler(pickle.Unpickler):
    """An unpickler that knows dictionaries of tensors, and nothing else.

    Args:
        archive: the `Archive` that `file` is of.
        file: binary file, its `data.pkl`.
    """

    def __init__(self, archive, file):
        super().__init__(file)
        self.archive = archive

    def find_class(self, module, name):
        """Returns what stands for a class of the pickle.

        Raises:
            ValueError: if it is not one of those that tensors need.
        """
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *_: Tensor(
                self.archive, storage, offset, shape, strides
            )
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda data, *_: data
        if module == "torch" and name in DTYPES:
            return name
        raise ValueError(
            "A file of PyTorch's weights must hold tensors alone. Received: "
            f"{module}.{name} in {self.archive.path}"
        )

    def persistent_load(self, pid):
        """Returns a reference to the numbers of a tensor as it is."""
        return pid


def no_archive(path):
    """Returns why a file is no zip archive, by its first bytes."""
    with open(path, "rb") as file:
        head = file.read(2)
    if head == b"PK":
        return "which is cut off or damaged"
    if head.startswith(b"\x80"):
        return (
            "of an older one: `torch.save(torch.load(path), path)` makes an "
            "archive of it"
        )
    return "which holds none, as the pointer of a file in Git LFS does not"


class Archive:
    """A file of weights, as `torch.save` writes the state of a model.

    Args:
        path: path of the file.

    Raises:
        ValueError: if it is no such file, cut off or damaged, or of PyTorch
            before 1.6.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        try:
            self.file = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise ValueError(
                "The weights must be an archive, as PyTorch writes it since "
                f"1.6. Received: {path}, {no_archive(path)}"
            ) from error
        pickles = [
            name
            for name in self.file.namelist()
            if name.rpartition("/")[2] == "data.pkl"
        ]
        if len(pickles) != 1:
            raise ValueError(
                "An archive of PyTorch's weights has one data.pkl. "
                f"Received: {len(pickles)} in {path}"
            )
        self.root = pickles[0].removesuffix("data.pkl")
        found = Unpickler(self, io.BytesIO(self.read("data.pkl"))).load()
        if not isinstance(found, dict):
            raise ValueError(
                "A file of PyTorch's weights must hold a dictionary of "
                f"tensors. Received: {type(found).__name__} in {path}"
            )
        self.tensors = {
            name: value
            for name, value in found.items()
            if isinstance(value, Tensor)
        }
        if found and not self.tensors:
            raise ValueError(
                "A file of PyTorch's weights must hold tensors by their names. "
                "Of a checkpoint of a training that may be one entry of it, "
                '`torch.save(torch.load(path)["model"], path)`. '
                f"Received: {list(map(str, found))} in {path}"
            )

    def read(self, name):
        """Reads a file of the archive.

        Raises:
            ValueError: if it is damaged, or is not there.
        """
        try:
            return self.file.read(self.root + name)
        except (KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{self.path} is damaged: {error}") from error

    def keys(self):
        """Lists the names of the tensors."""
        return list(self.tensors)

    def get_tensor(self, name):
        """Reads a tensor by its name as an array."""
        return self.tensors[name].numpy()

    def close(self):
        """Closes the file."""
        self.file.close()
