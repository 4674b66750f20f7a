"""Folders, patterns and manifests, replaced by clips and archives."""

import functools
import os
import pathlib
import typing

from audio_tf.archives import members, places
from audio_tf.audio import packed
from audio_tf.audio.audio_files import audio_among, files_of
from audio_tf.corpora.lists import check_fields, name_there, parse_table
from audio_tf.terminal import printable

MANIFESTS = (".csv", ".parquet")
UNLESS = ", unless they or a pattern of their suffix, as '*.tar', are given"


class Found(typing.NamedTuple):
    """A clip or an archive.

    Attributes:
        path: str.
        size: int, bytes, or `None` if it is not known.
        version: str that changes when the file does, or `None`.
        source: str, the source that it was found by, from whatever folder.
    """

    path: str
    size: int | None
    version: str | None
    source: str | None = None


def find(sources, column="file"):
    """Finds the clips and archives that are meant, each once.

    Args:
        sources: list of str: paths of files, folders, patterns, archives and
            manifests, on this machine or behind `gs://` and the like.
        column: str, the column of a manifest that has the paths.

    Yields:
        `Found`.

    Raises:
        FileNotFoundError: if a folder, a pattern or a manifest holds none.
        ValueError: if a manifest has no such column.
        OSError: if a filesystem refuses.
    """
    seen = set()
    for source in sources:
        for each in found_by(source, column):
            key = places.anywhere(each.path)
            if key not in seen:
                seen.add(key)
                yield each._replace(source=places.anywhere(source))


def found_by(source, column):
    """Yields what one source stands for; see `find`."""
    for path, size, version in expanded(source):
        if is_manifest(path):
            yield from manifest(path, column)
        else:
            yield Found(path, size, version)


def is_manifest(path):
    """Returns whether a path or a pattern is named as a manifest is."""
    return pathlib.PurePath(path).suffix.lower() in MANIFESTS


def expanded(source):
    """Replaces a folder or a pattern by its files, with size and version."""
    if not places.is_remote(source):
        for path in files_of(source, UNLESS):
            yield str(path), *local_version(path)
        return
    matched = places.match(source)
    if [path for path, _, _ in matched] == [source]:
        # One file, which is meant whatever its suffix.
        yield from matched
        return
    paths = [pathlib.PurePosixPath(path) for path, _, _ in matched]
    own = pathlib.PurePosixPath(source).suffix.lower()
    taken = {*audio_among(source, paths, own, UNLESS)}
    found = [
        each for path, each in zip(paths, matched, strict=True) if path in taken
    ]
    if not found:
        raise FileNotFoundError(f"{source}: no audio file matches")
    yield from found


def local_version(path):
    """Returns bytes and version of a file, which may be in a build or a zip."""
    size, version = places.version_of(path)
    if size is None:
        try:
            size, modified_ns = packed.status(path)
            version = f"{modified_ns / 1e9:.3f}"
        except (OSError, packed.PackError):
            # Whoever reads it says why.
            pass
    return size, version


def manifest(path, column):
    """Yields the files that a manifest names.

    Args:
        path: str, a CSV with a header, or a Parquet file. Names in it are
            relative to its folder; see `name_there` for their spelling.
        column: str, the column that has them.

    Raises:
        FileNotFoundError: if it is not there, or names no file.
        ValueError: if it has no such column, or a row has no name, or one
            that no file can have.
    """
    names = read_parquet if path.lower().endswith(".parquet") else read_csv
    folder = os.path.dirname(path)
    none = True
    for number, name in names(path, column):
        if not name or not name.strip():
            raise ValueError(f"{path}, row {number}: no name of a file")
        if "\0" in name:
            # As where a disk that was full has left zeros.
            raise ValueError(
                f"{path}, row {number}: a name of a file with a zero byte. "
                f"Received: {printable(name, 200)}"
            )
        none = False
        if places.is_remote(name):
            # To ask for each of ten million would take days.
            yield Found(name, None, None)
        elif places.is_remote(path):
            yield Found(places.join(folder, name), None, None)
        else:
            name = os.path.join(folder, name_there(folder, name))
            yield Found(name, *local_version(name))
    if none:
        raise FileNotFoundError(f"{path}: no rows")


def check_column(path, column, names):
    """Raises a `ValueError` unless a manifest has a column, once."""
    check_fields(path, names, [column], "; --column names another")


def read_csv(path, column):
    """Yields number and name of each row of a CSV."""
    check = functools.partial(check_column, path, column)
    with places.opened(path) as file:
        for number, row in parse_table(path, file, check):
            yield number, row[column]


def read_parquet(path, column):
    """Yields number and name of each row of a Parquet file."""
    places.need_beam(["pyarrow"])
    import pyarrow
    import pyarrow.parquet

    with places.opened(path) as file:
        try:
            table = pyarrow.parquet.ParquetFile(file)
        except pyarrow.ArrowException as error:
            raise ValueError(
                f"{path}: no Parquet file ({places.first_line(error)})"
            ) from error
        check_column(path, column, table.schema_arrow.names)
        number = 0
        for batch in table.iter_batches(columns=[column]):
            for name in batch.column(0).to_pylist():
                number += 1
                if name is not None and not isinstance(name, str):
                    raise ValueError(
                        f"{path}, row {number}: column {column!r} must hold "
                        f"text. Received: {name!r}"
                    )
                yield number, name


def is_archive(found):
    """Returns whether something found is an archive."""
    return members.is_archive(found.path)
