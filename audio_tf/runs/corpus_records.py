"""Every file that a model was made from, with its size and its labels.

The folder of a run has the record as `corpus.json`. A run that goes on must
find the same files and labels.
"""

import collections
import hashlib
import json
import os
import pathlib

from audio_tf.audio import packed
from audio_tf.runs.provenance import has_begun
from audio_tf.terminal import first_quoted

MISSING = "missing"


def make(corpora, root, others=()):
    """Lists every file of a corpus with its size and its labels.

    Args:
        corpora: dict of `Corpus` by split.
        root: the folder that names of files are relative to; it may move.
        others: further such folders, see `name_below`.

    Returns:
        Dict that JSON can hold: `vocabulary`, the labels in their order;
        `splits`, by split and name of the file a list of its size in bytes,
        or `"missing"`, and its labels; `left_out`, by name of the file the
        reason why it was not used, `None` until files are decoded.
    """
    splits = {}
    for split, corpus in corpora.items():
        splits[split] = {
            name_below(root, file, others): [
                size_of(file),
                *corpus.annotation(row),
            ]
            for row, file in enumerate(corpus.files)
        }
    vocabularies = [corpus.vocabulary for corpus in corpora.values()]
    return {
        "vocabulary": [str(label) for label in vocabularies[0]],
        "splits": splits,
        "left_out": None,
    }


def name_below(root, file, others=()):
    """Returns the path of a file from a folder, or the whole path.

    Args:
        root: the folder.
        file: the file; one that is not below a folder keeps its whole path.
        others: further folders. The path from one of them begins with `..`
            and its name, so that no file below `root` has it; of two of one
            name with those of the folders above them, too.
    """
    path = os.path.abspath(file)
    root, *others = map(os.path.abspath, (root, *others))
    for folder in (root, *others):
        name = os.path.relpath(path, folder)
        # Not by its first letters: a folder may be called "..old".
        if pathlib.PurePath(name).parts[:1] != (os.pardir,):
            if folder != root:
                name = os.path.join(os.pardir, own_tail(folder, others), name)
            return pathlib.Path(name).as_posix()
    return path


def own_tail(folder, folders):
    """Returns the shortest end of a path that no other of some paths has."""
    parts = pathlib.PurePath(folder).parts
    rest = [pathlib.PurePath(each).parts for each in {*folders} - {folder}]
    count = next(
        count
        for count in range(1, len(parts) + 1)
        if all(each[-count:] != parts[-count:] for each in rest)
    )
    return os.path.join(*parts[-count:])


def size_of(file):
    """Returns the bytes of a file, or `"missing"` if it is gone."""
    try:
        return packed.status(file)[0]
    except (OSError, ValueError):
        return MISSING


def leave_out(record, root, failures, others=()):
    """Returns a record that says which files were not used, and why.

    Args:
        record: dict that `make` has returned.
        root: the folder that names of files are relative to.
        failures: dict of the reason by path.
        others: further such folders, as `make` has had them.
    """
    reasons = {
        name_below(root, file, others): reason
        for file, reason in failures.items()
    }
    return {**record, "left_out": reasons}


def summary(record):
    """Sums up the files that a model was trained and tested on.

    Args:
        record: dict that `make` or `leave_out` has returned.

    Returns:
        Dict by split of the number of `files` that were used and a `sha256`
        over their names, sizes and labels and the vocabulary.
    """
    facts, left_out = {}, record["left_out"] or {}
    for split, listed in record["splits"].items():
        used = {
            name: entry
            for name, entry in listed.items()
            if name not in left_out
        }
        text = json.dumps([record["vocabulary"], sorted(used.items())])
        facts[split] = {
            "files": len(used),
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
        }
    return facts


def licence_facts(corpus, failures):
    """Counts the licences of the clips that a model was trained on.

    Args:
        corpus: `Corpus` of the training split.
        failures: dict of the reason by path of each file that was left out.

    Returns:
        Dict of a number by licence, `""` where the lists of the corpus name
        none for a clip; `None` where they do not tell of licences.
    """
    if corpus.licences is None:
        return None
    return dict(
        collections.Counter(
            licence or ""
            for file, licence in zip(corpus.files, corpus.licences, strict=True)
            if str(file) not in failures
        )
    )


def changes(before, now):
    """Compares a corpus with what it was when a run began.

    Args:
        before: a record.
        now: another one.

    Returns:
        List of texts, empty if nothing has changed.
    """
    found = []
    if before["vocabulary"] != now["vocabulary"]:
        found.append(label_change(before["vocabulary"], now["vocabulary"]))
    was, is_ = by_file(before), by_file(now)
    both = [name for name in was if name in is_]
    for names, what in (
        ([name for name in was if name not in is_], "removed"),
        ([name for name in is_ if name not in was], "added"),
        ([name for name in both if was[name][1] != is_[name][1]], "changed"),
        (
            [name for name in both if was[name][2:] != is_[name][2:]],
            "labelled otherwise",
        ),
        (
            [name for name in both if was[name][0] != is_[name][0]],
            "in another split",
        ),
    ):
        if names:
            splits = {split for name in names for split in (is_ | was)[name][0]}
            found.append(
                f"{counted(names)} {what}, {' and '.join(sorted(splits))}"
            )
    if None in (before["left_out"], now["left_out"]):
        return found
    was, is_ = set(before["left_out"]), set(now["left_out"])
    for names, what in (
        (sorted(was - is_), "left out then, used"),
        (sorted(is_ - was), "used then, left out"),
    ):
        if names:
            found.append(f"{counted(names)} {what} now")
    return found


def by_file(record):
    """Returns a dict by file of a list of its splits, its size and labels."""
    found = {}
    for split, listed in record["splits"].items():
        for name, entry in listed.items():
            splits = found[name][0] if name in found else []
            found[name] = [[*splits, split], *entry]
    return found


def label_change(before, now):
    """Returns a text on how a vocabulary has changed."""
    gone = [label for label in before if label not in now]
    new = [label for label in now if label not in before]
    if gone or new:
        return f"labels: {first_quoted(gone)} gone, {first_quoted(new)} new"
    return (
        f"labels: the same in another order, {first_quoted(now)} instead of "
        f"{first_quoted(before)}"
    )


def counted(names):
    """Returns a text of the number of files and the first names."""
    return f"{len(names)} files ({first_quoted(names)})"


def check(out, record, later=None):
    """Raises a `ValueError` if a run would go on with another corpus.

    Args:
        out: folder of the run; it may not be there yet.
        record: dict that `make` or `leave_out` has returned.
        later: str, a split that the run may have left out so far, or `None`.
    """
    path = pathlib.Path(out, "corpus.json")
    if not has_begun(out):
        return
    before = json.loads(path.read_text())
    if later is not None and later not in before["splits"]:
        record = without_split(record, later)
    found = changes(before, record)
    if found:
        raise ValueError(
            f"The corpus is not the one that {path} lists, with which this "
            f"run began. Received: {'; '.join(found)}"
        )


def check_alike(first, out, corpus, draw=None):
    """Checks that a finished run of a table is of the clips of those before.

    Lists and sizes are compared as a table begins; which files could not be
    decoded is known once a run has ended.

    Args:
        first: dict by `draw` of a pair of the first run and its corpus; empty
            at the first call, and filled here.
        out: folder of the run.
        corpus: dict that `summary` has returned of it. A split that one of
            both has left out is not compared.
        draw: the seed by which its splits were drawn, `None` where those of
            all runs are the same.

    Raises:
        ValueError: if its corpus is another than that of the first.
    """
    place, known = first.setdefault(draw, (out, corpus))
    common = corpus.keys() & known.keys()
    if not common or any(corpus[each] != known[each] for each in common):
        raise ValueError(
            f"The corpus of {out} is not that of {place}. "
            f"Received: {corpus} in place of {known}"
        )


def in_first_order(out, corpora, root, others=()):
    """Puts clips in the order in which a run began.

    Files and folders beside a corpus may be named in another order when the
    run goes on, and lines of a list change places.

    Args:
        out: folder of the run; it may not be there yet.
        corpora: dict of `Corpus` by split.
        root: the folder that names of files are relative to.
        others: further such folders, as `make` has had them.

    Returns:
        Dict of `Corpus` by split; files that the run does not know come last.
    """
    path = pathlib.Path(out, "corpus.json")
    if not has_begun(out):
        return corpora
    known, found = json.loads(path.read_text())["splits"], {}
    for split, corpus in corpora.items():
        places = {name: at for at, name in enumerate(known.get(split, ()))}
        first = [
            places.get(name_below(root, file, others), len(places))
            for file in corpus.files
        ]
        order = sorted(range(len(corpus)), key=first.__getitem__)
        found[split] = corpus.select(order)
    return found


def without_split(record, split):
    """Returns a record that says nothing of a split.

    Args:
        record: dict that `make` or `leave_out` has returned.
        split: str; it need not be there.
    """
    splits, left_out = dict(record["splits"]), record["left_out"]
    names = splits.pop(split, {})
    if left_out is not None:
        # A clip may be in several splits, where that is allowed.
        gone = set(names).difference(*splits.values())
        left_out = {k: v for k, v in left_out.items() if k not in gone}
    return {**record, "splits": splits, "left_out": left_out}
