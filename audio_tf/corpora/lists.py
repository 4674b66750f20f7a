"""Text files that list something: rows of a CSV, lines of fields."""

import codecs
import csv
import io
import os
import re
import unicodedata

from audio_tf.audio import packed
from audio_tf.ops.checks import closest

# Bytes that are not UTF-8, as Python decodes them.
ESCAPED = re.compile(r"[\udc80-\udcff]")
# Characters of a line that a message shows.
LINE_SHOWN = 200
# UTF-32 little-endian begins as UTF-16 does.
WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


def read_fields(path, strict=True):
    """Reads a CSV, with or without a header.

    Args:
        path: the file, which may be packed.
        strict: bool, as `parse_csv` takes it.

    Returns:
        List of pairs as `parse_csv` yields them.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no CSV, or in UTF-16.
    """
    return list(parse_csv(path, io.BytesIO(read_list(path)), strict))


def parse_csv(path, file, strict=True):
    """Reads the rows of a CSV one by one, with or without a header.

    Names of files need not be UTF-8: their bytes become surrogates, as
    everywhere in Python.

    Args:
        path: the file, for messages.
        file: what it is read from, open for bytes; it is closed.
        strict: bool. If False, a quote that is neither doubled nor at the end
            of its field is taken as it is.

    Yields:
        Pairs of the line number, from 1, and the list of fields; empty lines
        are passed over.

    Raises:
        ValueError: if it is no CSV, or in UTF-16.
    """
    begun, first = 0, ""

    def lines(text):
        nonlocal first
        for number, line in enumerate(text):
            if number == 0:
                check_not_utf16(path, line)
            if number == begun:
                first = line
            yield line

    with io.TextIOWrapper(
        file, "utf-8-sig", errors="surrogateescape", newline=""
    ) as text:
        # Not strictly, a quote that is never closed takes in the rows below it.
        reader = csv.reader(lines(text), strict=strict)
        try:
            for fields in reader:
                begun = reader.line_num
                if fields:
                    yield begun, fields
        except csv.Error as error:
            raise ValueError(
                f"{path}, row {begun + 1}: not CSV ({error}); a quote must be "
                "closed, and one within a quoted field be doubled. "
                f"Received: {first.strip()[:LINE_SHOWN]!r}"
            ) from error


def parse_table(path, file, check_header):
    """Reads the rows of a CSV with a header, one by one.

    Args:
        path: the file, for messages.
        file: what it is read from, open for bytes; it is closed.
        check_header: function of the list of the columns' names, which raises
            a `ValueError` if these are not those that are wanted. Of a file
            without any line the list is empty.

    Yields:
        Pairs of the line number and a dict by column.

    Raises:
        ValueError: if it is no CSV, if the names of its columns are not UTF-8,
            or if a row has not as many fields as the header.
    """
    rows = parse_csv(path, file)
    number, names = next(rows, (1, []))
    for name in names:
        check_utf8(f"{path}, row {number}", name)
    check_header(names)
    for number, fields in rows:
        if len(fields) != len(names):
            few = len(fields) < len(names)
            raise ValueError(
                f"{path}, row {number}: too {'few' if few else 'many'} "
                "fields; one that holds commas must be quoted. "
                f"Received: {fields} for {names}"
            )
        yield number, dict(zip(names, fields, strict=True))


def check_fields(path, names, wanted, hint=""):
    """Raises a `ValueError` unless a table has some columns, each once.

    Args:
        path: the file, for messages.
        names: list of str, the columns that it has.
        wanted: iterable of str, those that it must have.
        hint: str, what else may help, for the message.
    """
    missing = [name for name in wanted if name not in names]
    if missing:
        near = [f"{name!r}{closest(name, names)}" for name in missing]
        raise ValueError(
            f"{path}: no column {', '.join(near)}{hint}. Received: {names}"
        )
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"{path}: the column {twice[0]!r} must be there once. "
            f"Received: {names}"
        )


def check_not_utf16(path, text):
    """Raises a `ValueError` if a text is in UTF-16 or UTF-32.

    Args:
        path: the file, for messages.
        text: str, the beginning of the file, bytes that are not UTF-8 as
            surrogates.
    """
    if text[:4].encode("utf-8", "surrogateescape").startswith(WIDE_MARKS):
        raise ValueError(
            f"{path}: must be UTF-8, but begins as UTF-16 or UTF-32 does; "
            "save it as UTF-8"
        )


def check_utf8(where, text):
    """Raises a `ValueError` if a text has bytes that are not UTF-8.

    Args:
        where: the file and the row or line, for messages.
        text: str, bytes that are not UTF-8 as surrogates.
    """
    if ESCAPED.search(text):
        content = text.encode("utf-8", "surrogateescape")
        # Windows-1252 has all that can be seen of Latin-1, and more.
        guess = content.decode("cp1252", "replace")
        raise ValueError(
            f"{where}: must be UTF-8, but seems to be Latin-1 or "
            f"Windows-1252. Received: {content!r}, which may be {guess!r}"
        )


def is_there(path):
    """Returns whether there is a list, which may be in the release's archive.

    Args:
        path: `pathlib.Path` of the file.

    Raises:
        ValueError: if it might be in an archive that is damaged.
    """
    return path.is_file() or packed.find(path) is not None


def read_list(path):
    """Returns the bytes of a list, which may be in the release's archive.

    Args:
        path: the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is in an archive that is damaged.
    """
    try:
        return packed.read_bytes(path)
    except IsADirectoryError:
        raise FileNotFoundError(
            f"{path}: no such file, it is a folder"
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{path}: no such file") from None


def read_rows(path, columns, optional=None):
    """Reads a CSV with a header.

    Args:
        path: the file.
        columns: names of the columns that it must have.
        optional: names of the further columns that it may have, or `None` if
            it may have any, as the files of a release do.

    Returns:
        List of pairs of the line number and a dict by column.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a column is missing, unknown or there twice, if there
            is no row, or one has not as many fields as the header.
    """

    def check_header(names):
        known = [*columns, *(names if optional is None else optional)]
        unknown = [name for name in names if name not in known]
        near = [f"{name!r}{closest(name, known)}" for name in unknown]
        if unknown:
            raise ValueError(
                f"{path}: unknown column {', '.join(near)}. "
                f"Received: {names}; known are {known}"
            )
        check_fields(path, names, [*columns, *names])

    rows = list(parse_table(path, io.BytesIO(read_list(path)), check_header))
    if not rows:
        raise ValueError(f"{path}: no rows below the header")
    return rows


def audio_path(path, number, folder, name):
    """Returns the path of the audio file that a row of a CSV names.

    Args:
        path: the CSV, for messages.
        number: int, the row, for messages.
        folder: `pathlib.Path` that the names are relative to.
        name: str, the field, see `name_there`.

    Raises:
        ValueError: if the field is empty.
    """
    if not name.strip():
        raise ValueError(f"{path}, row {number}: no name of a file")
    return folder / name_there(folder, name)


def name_there(folder, name):
    """Returns the name that a file has in a folder, by its name in a list.

    A name in one form of Unicode is that of a file in the other form, unless
    there is one of the very name: macOS hands out names decomposed, also to
    what packs them, where a list has them as they were typed.

    Args:
        folder: path of the folder that the names are relative to.
        name: str, what the list has.
    """
    if name.isascii():
        return name
    forms = [unicodedata.normalize(form, name) for form in ("NFC", "NFD")]
    for form in (name, *forms):
        if os.path.lexists(os.path.join(folder, form)):
            return form
    return name


def read_lines(path):
    """Yields the number, from 1, and the fields of each line that has any.

    Args:
        path: the file, whose fields are separated by blanks or tabs; it may be
            in the release's archive.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is not UTF-8, or in an archive that is damaged.
    """
    content = io.BytesIO(read_list(path))
    with io.TextIOWrapper(content, "utf-8-sig", "surrogateescape") as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                check_not_utf16(path, line)
            check_utf8(f"{path}, line {number}", line.strip())
            fields = line.split()
            if fields:
                yield number, fields
