"""Embeddings of a corpus by the layers of an encoder, and folds of clips."""

import dataclasses

import numpy as np

from audio_tf import attention, data
from audio_tf.analysis.layer_embeddings import LayerEmbeddings
from audio_tf.corpora import Corpus
from audio_tf.models import AudioBackbone
from audio_tf.runs import corpus_records, heard
from audio_tf.runs.fold_arrays import Embedded
from audio_tf.runs.leakage import MODEL, SCORED

# The name of the only fold of `--protocol splits`.
WHOLE = "splits"


@dataclasses.dataclass(frozen=True)
class Fold:
    """The clips that a decoder is trained, validated and tested on.

    Attributes:
        rows: dict of boolean arrays `(clips,)` by split.
        validation: str, the group or the split that is the validation.
        tested: str, the group or the split that is the test.
    """

    rows: dict
    validation: str
    tested: str

    def check(self):
        """Raises a `ValueError` if a split has no clips."""
        counts = {split: int(rows.sum()) for split, rows in self.rows.items()}
        if not all(counts.values()):
            raise ValueError(
                f"The fold that is tested on {self.tested} must have clips in "
                f"all splits. Received: {counts}"
            )


def merged(splits):
    """Puts the splits of a corpus together.

    Args:
        splits: dict of `Corpus` by split.

    Returns:
        Pair of a `Corpus` and a list of the split of each clip.

    Raises:
        ValueError: if a clip has no label or several.
    """
    corpora = list(splits.values())
    grouped = all(each.groups is not None for each in corpora if len(each))
    known = all(each.sources is not None for each in corpora if len(each))
    whole = Corpus(
        [file for each in corpora for file in each.files],
        [labels for each in corpora for labels in each.labels],
        corpora[0].vocabulary,
        groups=[group for each in corpora for group in each.groups or []]
        if grouped
        else None,
        sources=[source for each in corpora for source in each.sources or []]
        if known
        else None,
        source_kind=corpora[0].source_kind if known else None,
    )
    if not whole.has_one_label():
        counts = [len(labels) for labels in whole.labels]
        row = next(row for row, count in enumerate(counts) if count != 1)
        raise ValueError(
            "Each clip must have one label. Received: "
            f"{whole.labels[row]} for {whole.files[row]}"
        )
    names = [name for name, each in splits.items() for _ in range(len(each))]
    return whole, names


def listed(settings):
    """Reads a corpus, and notes the files that folds are made of.

    Args:
        settings: `EmotionSettings`.

    Returns:
        Triple of a `Corpus` of all splits, a list of the split of each clip,
        and the `corpus_record`.

    Raises:
        ValueError: if a clip has no label or several.
    """
    loaded = settings.load()
    corpus, splits = merged(loaded)
    # Where groups are left out, nothing depends on the splits.
    by_split = settings.protocol == "splits"
    record = corpus_records.make(
        loaded if by_split else {"all": corpus}, settings.file_root()
    )
    return corpus, splits, record


def check_layers(layers, known):
    """Returns the numbers of the layers that are decoded.

    Args:
        layers: list of int, or `None` for all but the embedding, number 0.
        known: iterable of int, the numbers of the layers that there are.

    Raises:
        ValueError: if one of them is not there, or they are not ascending.
    """
    known = list(known)
    if layers is None:
        return [number for number in known if number]
    fits = bool(layers) and set(layers) <= set(known)
    if not fits or layers != sorted(set(layers)):
        raise ValueError(
            f"--layers must be ascending numbers of {known}. Received: {layers}"
        )
    return layers


def embed_corpus(settings, out, check):
    """Decodes a corpus, and embeds its chunks through the cache.

    Args:
        settings: `EmotionSettings`.
        out: `pathlib.Path`, the folder of the run, which may have begun.
        check: function of `Embedded` without a chunk, which raises an error
            if nothing can be trained on such, before all is decoded.

    Returns:
        Tuple of `Embedded`, the encoder, a `corpus_record`, a list of
        `leaks.Leak` of the sides that folds are made of, and a dict of the
        files that were left out.

    Raises:
        ValueError: if the model takes no waveforms, or no clips as long as
            those that are embedded whole, or as `leakage.Leakage` raises it.
    """
    corpus, splits, record = listed(settings)
    # Before all is decoded.
    corpus_records.check(out, record)
    encoder = AudioBackbone.from_preset(settings.model, trainable=False)
    if encoder.takes != "waveform":
        raise ValueError(
            "--model must take waveforms, as the preset of audio-tf pretrain "
            f"does. Received: {settings.model}, which takes {encoder.takes}"
        )
    attention.fold(encoder)
    embeddings = LayerEmbeddings(encoder, settings.chunk_s or None)
    layers = check_layers(settings.layers, range(embeddings.layers))
    shape = (-1, embeddings.layers, embeddings.dim // embeddings.layers)
    x = np.zeros((0, len(layers), shape[-1]), "float32")
    check(described(corpus, splits, x, np.zeros(0, np.int64), layers))
    arguments = settings.prepare_arguments()
    clips = data.prepare(corpus, encoder.sample_rate_hz, **arguments)
    check_lengths(encoder, clips, settings)
    record = corpus_records.leave_out(
        record, settings.file_root(), clips.failures
    )
    corpus_records.check(out, record)
    kept = {str(file) for file in clips.corpus.files}
    splits = [
        split
        for file, split in zip(corpus.files, splits, strict=True)
        if str(file) in kept
    ]
    shared = find_leaks(settings, clips, splits)
    cached = data.cache_features(clips, embeddings, arguments["cache_dir"])
    x = [
        cached.read(row).reshape(shape)[:, layers] for row in range(len(clips))
    ]
    found = described(
        clips.corpus,
        splits,
        np.concatenate(x),
        np.repeat(np.arange(len(clips)), cached.lengths),
        layers,
    )
    found = dataclasses.replace(found, marks=clips.marks)
    return found, encoder, record, shared, clips.failures


def find_leaks(settings, clips, splits):
    """Finds what the sides of folds, and the encoder, have in common.

    Args:
        settings: `EmotionSettings`.
        clips: `Clips` of all splits.
        splits: list of the split of each clip.

    Returns:
        List of `leaks.Leak` that are allowed.

    Raises:
        ValueError: as `leakage.Leakage`, if one is not.
    """
    by_split = settings.protocol == "splits"
    sides = by_side(clips, splits if by_split else named_groups(clips.corpus))
    leakage = settings.leakage()
    return [
        *leakage.of_sources({name: sides[name].corpus for name in sides}),
        *leakage.of_audio(sides),
        *leakage.of_model(
            MODEL,
            settings.model,
            heard.read(settings.model),
            sides,
            SCORED if by_split else sides,
        ),
    ]


def described(corpus, splits, x, clips, layers):
    """Puts embeddings and what the clips of a corpus are together.

    Args:
        corpus: `Corpus` of all splits.
        splits: list of the split of each clip.
        x, clips, layers: as `Embedded` has them.
    """
    return Embedded(
        x,
        clips,
        corpus.targets(),
        None if corpus.groups is None else np.array(corpus.groups),
        np.array(splits),
        corpus.vocabulary,
        layers,
        corpus,
    )


def check_lengths(encoder, clips, settings):
    """Raises a `ValueError` if a whole clip is longer than an encoder takes.

    Args:
        encoder: an `AudioBackbone`.
        clips: `Clips` at its rate.
        settings: `EmotionSettings`.
    """
    limit, longest = encoder.max_samples, clips.lengths.max()
    if settings.chunk_s or limit is None or longest <= limit:
        return
    rate_hz = clips.sample_rate_hz
    raise ValueError(
        f"--chunk-s must cut clips into at most {limit / rate_hz:g} s, which "
        "the encoder takes. Received: --chunk-s 0, and a clip of "
        f"{longest / rate_hz:g} s"
    )


def named_groups(corpus):
    """Returns the group of each clip, as no split and no flag is called.

    Args:
        corpus: `Corpus`.

    Returns:
        List of str, or `None` where nobody knows of groups.
    """
    return corpus.groups and [f"group {name}" for name in corpus.groups]


def by_side(clips, sides):
    """Puts clips apart that a fold does not train and score together.

    Args:
        clips: `Clips`.
        sides: list of str, the split of each clip or what `named_groups`
            returns.

    Returns:
        Dict of `Clips` by side.
    """
    rows = {}
    for row, side in enumerate(sides or []):
        rows.setdefault(side, []).append(row)
    return {side: clips.select(each) for side, each in rows.items()}


def make(embedded, settings):
    """Lists which clips each fold trains, validates and tests on.

    Args:
        embedded: `Embedded`.
        settings: `EmotionSettings`.

    Returns:
        Dict of `Fold` by name.

    Raises:
        ValueError: if there is nobody to be left out, a split is empty, or
            all clips have the same label.
    """
    labels = embedded.vocabulary
    if len(labels) < 2:
        raise ValueError(
            "A decoder needs two labels, or it is right whatever it hears. "
            f"Received: {labels} of {len(embedded.targets)} clips"
        )
    if settings.protocol == "splits":
        return fold_of_splits(embedded)
    return folds_of_groups(embedded, settings)


def fold_of_splits(embedded):
    """Makes the fold of the corpus' own splits, as `make` does.

    Args:
        embedded: `Embedded`.
    """
    if embedded.splits is None:
        raise ValueError(
            "--protocol splits needs splits. Received: `groups` alone"
        )
    parts = {
        split: embedded.splits == split for split in ("train", "val", "test")
    }
    tested = "test"
    if not parts["test"].any():
        # A corpus may hold its test back.
        parts["test"], tested = parts["val"], "val"
    fold = Fold(parts, "val", tested)
    fold.check()
    return {WHOLE: fold}


def folds_of_groups(embedded, settings):
    """Makes a fold for each group that is left out, as `make` does.

    Args:
        embedded: `Embedded`.
        settings: `EmotionSettings`.
    """
    if embedded.groups is None:
        raise ValueError(
            "--protocol leave_one_out needs to know who speaks in each clip; "
            "--protocol splits does not. Received: clips without groups"
        )
    names = sorted(set(embedded.groups.tolist()))
    least = 3 if settings.validate_on == "next" else 2
    if len(names) < least:
        raise ValueError(
            f"--validate-on {settings.validate_on} needs {least} groups. "
            f"Received: {names}"
        )
    wanted = settings.leave_out or names
    for name in wanted:
        if name not in names:
            raise ValueError(
                f"--leave-out must be among {names}. Received: {name!r}"
            )
    found = {}
    for place, name in enumerate(names):
        if name not in wanted:
            continue
        validation = name
        if settings.validate_on == "next":
            validation = names[(place + 1) % len(names)]
        test = embedded.groups == name
        val = embedded.groups == validation
        parts = {"train": ~(test | val), "val": val, "test": test}
        found[name] = Fold(parts, validation, name)
        found[name].check()
    return found
