"""The files of scores: their columns, and what failed beside them."""

import csv
import io
import json
import typing

import numpy as np

from audio_tf.archives import places
from audio_tf.ops.answers import best_first

FAILED = "failed.csv"


class Settings(typing.NamedTuple):
    """The settings that all scores in a folder share.

    Attributes:
        model: str, the name or place of the model, as it was given.
        labels: list of str, the names of the classes.
        window_s: float, seconds from which on a recording becomes windows of
            that length, or `None`.
        top: int, how many labels a row has, or `None` for the scores of all.
        embeddings: bool, whether there are embeddings, too.
    """

    model: str
    labels: list
    window_s: float | None = 60.0
    top: int | None = 5
    embeddings: bool = False


class Scored(typing.NamedTuple):
    """A clip, or a window of one, and what a model says of it.

    Attributes:
        file: str, the name of the clip.
        start_s: float.
        end_s: float, the seconds of the clip that it spans.
        scores: float array `(classes,)`.
        embedding: float array `(dim,)`, or `None`.
    """

    file: str
    start_s: float
    end_s: float
    scores: np.ndarray
    embedding: np.ndarray | None


def make(rows, failed, settings):
    """Makes the table of a shard.

    Args:
        rows: list of `Scored`.
        failed: list of pairs of a name and why it has no scores.
        settings: `Settings`.

    Returns:
        `pyarrow.Table` with the columns `file`, `start_s`, `end_s`; `labels`
        and `scores`, lists of the best ones, or `scores` alone, those of all
        labels; and `embedding`, if wanted. Its metadata `audio_tf` are a JSON
        object of the settings, its metadata `failed` the pairs.
    """
    import pyarrow

    text, floats = pyarrow.string(), pyarrow.list_(pyarrow.float32())
    columns = {
        "file": ([row.file for row in rows], text),
        "start_s": ([row.start_s for row in rows], pyarrow.float64()),
        "end_s": ([row.end_s for row in rows], pyarrow.float64()),
    }
    if settings.top is None:
        columns["scores"] = ([row.scores for row in rows], floats)
    else:
        best = [best_first(row.scores, settings.top) for row in rows]
        names = np.array(settings.labels, object)
        columns["labels"] = (
            [names[each].tolist() for each in best],
            pyarrow.list_(text),
        )
        scores = [
            row.scores[each] for row, each in zip(rows, best, strict=True)
        ]
        columns["scores"] = (scores, floats)
    if settings.embeddings:
        columns["embedding"] = ([row.embedding for row in rows], floats)
    schema = pyarrow.schema(
        [(name, kind) for name, (_, kind) in columns.items()],
        {"audio_tf": json.dumps(settings._asdict()), "failed": dump(failed)},
    )
    arrays = [
        pyarrow.array(
            [
                np.asarray(value, "float32")
                if isinstance(value, np.ndarray)
                else value
                for value in values
            ],
            kind,
        )
        for values, kind in columns.values()
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def dump(failed):
    """Returns pairs as JSON."""
    return json.dumps([list(pair) for pair in failed])


def failed_of(schema):
    """Returns the pairs of name and reason of a table, by its schema."""
    return [tuple(each) for each in json.loads(schema.metadata[b"failed"])]


def write(path, table):
    """Writes a table, whole or not at all."""
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, compression="zstd")
    places.write(path, file.getvalue())


def pick(path, names):
    """Reads the rows of some clips of a file of scores.

    Args:
        path: str.
        names: set of the names of clips that have scores in it.

    Returns:
        `pyarrow.Table` as `make` makes it, in which nothing has failed.
    """
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(io.BytesIO(places.read(path)))
    chosen = pyarrow.array(
        [name in names for name in table["file"].to_pylist()], pyarrow.bool_()
    )
    metadata = {**table.schema.metadata, b"failed": dump([])}
    return table.filter(chosen).replace_schema_metadata(metadata)


class Counts(typing.NamedTuple):
    """The rows of a file of scores, and what failed.

    Attributes:
        rows: int, clips and windows.
        failed: list of pairs of a name and why it has no scores.
    """

    rows: int
    failed: list


def read_counts(path):
    """Returns the `Counts` of a file of scores.

    Raises:
        ValueError: if it is no such file.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        with places.opened(path) as file:
            table = pyarrow.parquet.ParquetFile(file)
            failed = failed_of(table.schema_arrow)
            return Counts(table.metadata.num_rows, failed)
    except (pyarrow.ArrowException, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: damaged ({places.first_line(error)}); remove it, and "
            "run the command again"
        ) from error


def write_failed(out, failed):
    """Writes the names of all that has no scores, sorted, and why.

    Args:
        out: str, the folder of the results.
        failed: iterable of pairs of name and reason.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["file", "reason"])
    rows.writerows(sorted(failed))
    content = text.getvalue().encode("utf-8", "backslashreplace")
    places.write(places.join(out, FAILED), content)
