"""Texts with labels: AG News as released, or a CSV of one's own."""

import pathlib

from audio_tf.corpora.corpus import SPLITS
from audio_tf.corpora.examples import Examples, source
from audio_tf.corpora.lists import read_fields, read_rows
from audio_tf.ops.checks import closest

# The classes of AG News, which its files count from 1.
AG_NEWS = ("World", "Sports", "Business", "Sci/Tech")


def text_of(item):
    """Returns a text, whose bytes that are no UTF-8 are replaced.

    Raises:
        ValueError: if there is nothing in it.
    """
    text = item.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not text.strip():
        raise ValueError("an empty text")
    return text


def read_ag_news(data_dir):
    """Reads AG News as released: `train.csv` and `test.csv`.

    Their rows are class, from 1 to 4, title and description, without a
    header. A text is the title, a space and the description.

    Args:
        data_dir: the folder of both files.

    Returns:
        `Examples`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a row is not as above.
    """
    items, labels, splits, names, sources = [], [], [], [], {}
    known = [str(number) for number in range(1, len(AG_NEWS) + 1)]
    for split in ("train", "test"):
        path = pathlib.Path(data_dir, f"{split}.csv")
        # As it was released, whatever its texts have in quotes.
        for number, fields in read_fields(path, strict=False):
            if len(fields) != 3 or fields[0] not in known:
                raise ValueError(
                    f"{path}, row {number}: must be a class of {known}, a "
                    f"title and a description. Received: {fields}"
                )
            items.append(f"{fields[1]} {fields[2]}")
            labels.append(AG_NEWS[int(fields[0]) - 1])
            splits.append(split)
            names.append(f"{path.name}, row {number}")
        sources[path.name] = source(path)
    return Examples(
        "text", items, labels, splits, names, sources, text_of
    ).check(data_dir)


def read_text_table(path):
    """Reads a CSV with the header `text,label[,split]`.

    Args:
        path: the file. Without a column `split` all is train.

    Returns:
        `Examples`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a row or a column is not as above.
    """
    path = pathlib.Path(path)
    rows = read_rows(path, ["text", "label"], ["split"])
    splits = [row.get("split", "train") for _, row in rows]
    for (number, _), split in zip(rows, splits, strict=True):
        if split not in SPLITS:
            raise ValueError(
                f"{path}, row {number}: split must be one of {SPLITS}"
                f"{closest(split, SPLITS)}. Received: {split!r}"
            )
    return Examples(
        "text",
        [row["text"] for _, row in rows],
        [row["label"] for _, row in rows],
        splits,
        [f"{path.name}, row {number}" for number, _ in rows],
        {path.name: source(path)},
        text_of,
    ).check(path)
