"""Evaluate a preset or a SavedModel on a split of a corpus, clip by clip.

    audio-tf evaluate --model runs/fsd50k/preset \\
        --dataset fsd50k --data-dir FSD50K --split test --report test.json

A clip's scores are the mean over its chunks. A model is not scored on clips
that it was trained on, but for --split train. Prints a table; --report gets
all figures as JSON, with the average precision of each class and, where
training has calibrated thresholds on other clips, F1 at these; --pictures a
folder with errors.csv, the confusion matrix and the figures of each class.
"""

import dataclasses
import functools

import numpy as np

from audio_tf import data, files
from audio_tf.corpora import leaks, load_corpus
from audio_tf.corpora.corpus import file_identity
from audio_tf.corpora.labels import column_order
from audio_tf.export import load_classifier
from audio_tf.export.classifiers import built_on, read_provenance
from audio_tf.runs import corpus_records, heard, results, showing
from audio_tf.runs.beside import BESIDE
from audio_tf.runs.corpus_settings import DataSettings, ReportSettings
from audio_tf.runs.flags import check_folder, run_by_flags
from audio_tf.runs.leakage import MODEL, PRETRAINING, TEACHERS, TRAIN
from audio_tf.runs.settings import setting, shared
from audio_tf.terminal import describe_failures, first_quoted, printable


@dataclasses.dataclass
class EvaluateSettings(ReportSettings):
    """A model and the labelled clips that it is scored on."""

    model: str = shared("model", "runs/train/preset")
    batch_size: int = shared("batch_size", 64)
    pictures: str | None = setting(
        None, "folder for pictures and errors.csv", unless_given="none"
    )

    def check(self):
        super().check()
        if self.pictures is not None:
            check_folder("pictures", self.pictures, self.data_dir)


def labelled_chunks(
    model, preset, dataset, data_dir, test_folds=None, other_splits=False
):
    """Cuts the test split of a corpus into chunks, as a model is evaluated.

    Args:
        model: the `AudioClassifier`.
        preset: what it was loaded from, as `heard.read` takes it.
        dataset: str, a key of `CORPORA`.
        data_dir: path of the corpus, or `None` for one that has its own.
        test_folds: list of int, the folds that are the test, or `None`.
        other_splits: bool, whether the test may be another than the official
            one, and have clips that the model was trained on.

    Returns:
        `Chunks` whose targets are in the order of the model's labels.

    Raises:
        ValueError: if the corpus has other labels than the model, whose order
            does not matter, or the model was trained on a clip.
    """
    folds = {}
    if test_folds is not None:
        # The other splits are not read.
        folds = {"train_folds": [], "val_folds": [], "test_folds": test_folds}
    settings = DataSettings(
        dataset=dataset, data_dir=data_dir, other_splits=other_splits, **folds
    )
    corpora = settings.load()
    corpus = corpora["test"]
    order = column_order(model.labels, corpus.vocabulary, model.num_classes)
    vocabulary = [corpus.vocabulary[row] for row in np.argsort(order)]
    corpora["test"] = dataclasses.replace(corpus, vocabulary=vocabulary)
    clips, _, _ = decode_unheard(
        settings, preset, corpora, "test", model.sample_rate_hz
    )
    return data.Chunks.for_model(clips, model)


def score_split(classifier, corpus, split, arguments, batch_size=64):
    """Decodes and scores the clips of a split.

    Args:
        classifier: an `AudioClassifier`, or what was exported of one.
        corpus: `Corpus` of the split.
        split: str, its name.
        arguments: dict of keyword arguments of `data.prepare`.
        batch_size: int.

    Returns:
        Pair of `Chunks` and of scores `(clips, classes)`, their columns in the
        order of the corpus' vocabulary.
    """
    # Labels that do not fit are told before hours of decoding.
    order = columns(classifier, corpus)
    clips = data.prepare(
        corpus, classifier.sample_rate_hz, name=split, **arguments
    )
    return score(classifier, clips, order, batch_size)


def score(classifier, clips, order, batch_size=64):
    """Cuts clips into chunks as a classifier takes them, and scores these.

    Args:
        classifier: an `AudioClassifier`, or what was exported of one.
        clips: `Clips` at its rate.
        order: array that `columns` has returned.
        batch_size: int.

    Returns:
        As `score_split`.
    """
    chunks = data.Chunks.for_model(clips, classifier)
    scores = data.score_clips(classifier, chunks, batch_size, verbose=0)
    return chunks, scores[:, order]


def columns(classifier, corpus):
    """Finds the columns of a classifier's scores in the order of a corpus.

    Args:
        classifier: an `AudioClassifier`, or what was exported of one.
        corpus: `Corpus` of a split.

    Returns:
        Integer array `(classes,)`, as `column_order` returns it.
    """
    order = column_order(
        classifier.labels, corpus.vocabulary, classifier.num_classes
    )
    if classifier.labels is None:
        print("the model knows no labels; taken as the corpus' in their order")
    elif list(classifier.labels) != list(corpus.vocabulary):
        print("the model has the corpus' labels in another order; mapped")
    return order


def trained_on(settings, origin):
    """Reads which clips of a corpus a model was trained on.

    Args:
        settings: `ReportSettings`, which say where the corpus is.
        origin: dict, the `provenance.json` of the model.

    Returns:
        Pair of a list of paths, or `None` where the model does not say, or
        comes from another corpus, and of a bool, whether they surely are all
        that it was trained on: the list of a corpus may have changed since.
    """
    said = origin.get("settings", {})
    # Folds of speakers have no split of that name.
    split = "train" in origin.get("corpus", {})
    if not split or said.get("dataset") != settings.dataset:
        return None, False
    # Which clips are there, and their labels, is what is said now.
    ours = ("data_dir", "cache_dir", "vocabulary")
    known = {field.name for field in dataclasses.fields(DataSettings)}
    known = known.intersection(origin["given"]).difference(ours)
    # Commands differ in the corpus that is read where none is named.
    given = {name: said[name] for name in {"dataset", *known}}
    given |= {**settings.those_given(ours), "other_splits": True}
    training = DataSettings(**given)
    options = training.options()
    # The other folds need not be there.
    options |= training.taken(
        {"folds": {"train": training.train_folds, "val": [], "test": []}}
    )
    folder = settings.corpus_dir()
    try:
        found = load_corpus(settings.dataset, folder, **options)
    except (ValueError, OSError) as error:
        # Of a corpus of which some is gone.
        print(f"not known what the model was trained on: {printable(error)}")
        return None, False
    record = corpus_records.make(
        {"train": found["train"]}, settings.file_root()
    )
    same = corpus_records.summary(record) == {
        "train": origin["corpus"]["train"]
    }
    return found["train"].files, same


def heard_by_name(corpus, files, complete, marks=None):
    """Finds clips that a model was trained on by what the training has listed.

    Args:
        corpus: `Corpus` of the split that is scored.
        files, complete: pair that `trained_on` has returned.
        marks: array of what the model has learned, or `None`. With them,
            names count only if they surely are those of the training: another
            corpus of the same layout may be split alike.

    Returns:
        List of paths, or `None` where it is not known whether there are any.
    """
    if files is None or (marks is not None and not complete):
        return None
    known = set(map(file_identity, files))
    found = [file for file in corpus.files if file_identity(file) in known]
    return found if found or complete else None


def heard_beside(origin):
    """Returns whether a model has learned from more than the corpus it names.

    Args:
        origin: dict, the `provenance.json` of the model.
    """
    said = origin.get("settings", {})
    beside = any(said.get(name) for name in (TEACHERS, *BESIDE))
    return beside or bool(said and built_on(origin))


def decode_unheard(settings, preset, corpora, split, sample_rate_hz):
    """Decodes a split, and refuses what the model that scores it has heard.

    Args:
        settings: `DataSettings`.
        preset: what the model was loaded from, as `heard.read` takes it.
        corpora: dict of `Corpus` by split.
        split: str, the one that is scored.
        sample_rate_hz: int, the rate of the model.

    Returns:
        Triple of `Clips`, of a list of the `Leak` that are allowed, and of
        how many of the clips the model has heard, or `None` if that is not
        known.

    Raises:
        ValueError: as `leakage.Leakage` raises it.
    """
    leakage, has_heard = settings.leakage(), heard.read(preset)
    marks, unlabelled = has_heard.learned, has_heard.unlabelled()
    origin = read_provenance(preset) or {}
    named = heard_by_name(corpora[split], *trained_on(settings, origin), marks)
    # Before hours of decoding; the samples tell more.
    found = leakage.of_files(
        MODEL, preset, {} if split == TRAIN else {split: named or []}
    )

    def decode(split):
        return data.prepare(
            corpora[split],
            sample_rate_hz,
            name=split,
            **settings.prepare_arguments(),
        )

    def training():
        return decode(TRAIN) if len(corpora.get(TRAIN, ())) else None

    clips = decode(split)
    # What was beside a corpus is not in its list.
    unknown = named is None or heard_beside(origin)
    if unlabelled is not None and split != TRAIN:
        again = {split: heard.find(unlabelled, clips)}
        found += leakage.of_files(PRETRAINING, preset, again)
    if marks is None:
        return clips, found, None if unknown else len(named)
    known = set(named or [])
    again = [file for file in heard.find(marks, clips) if file not in known]
    found += leakage.of_split(preset, split, clips, again, training)
    count = len(known) + len(again)
    decoder = origin.get("settings", {}).get("decoder", settings.decoder)
    if not count and unknown and decoder != settings.decoder:
        # The samples of another decoder have other marks.
        count = None
    return clips, found, count


def check_vocabulary(settings, classifier, corpus):
    """Says how a corpus is scored that has not all labels of a model.

    Args:
        settings: `ReportSettings`.
        classifier: as `columns` takes it.
        corpus: `Corpus` of the split.

    Raises:
        ValueError: if the labels of the corpus are those that occur, and the
            model has these and others.
    """
    labels = classifier.labels or []
    lacking = [label for label in labels if label not in corpus.vocabulary]
    occurring = settings.taken({"vocabulary": None}) and not settings.vocabulary
    if occurring and lacking and set(corpus.vocabulary) <= set(labels):
        raise ValueError(
            "--vocabulary must be a file of all labels of the model, one a "
            "line, where some have no clip. Received: none, and no clip of "
            f"{first_quoted(lacking)}"
        )


def thresholds_for(split, record, origin):
    """Returns the thresholds that a split is scored at, if there are any.

    On the very clips that they were calibrated on, F1 would be flattered.

    Args:
        split: str, its name.
        record: `corpus_record`, which says what of the split was not used.
        origin: dict, the `provenance.json` of the model.

    Returns:
        Dict by label, or `None`. What was trained before there were
        thresholds has none.
    """
    found = origin.get("thresholds")
    if found is not None:
        # A vocabulary may have another order than that of the training.
        record = {**record, "vocabulary": origin["labels"]}
        facts = corpus_records.summary(record)[split]
        if facts == origin["corpus"].get("val"):
            print("no F1 at thresholds: they were calibrated on these clips")
            return None
    return found


def run(settings):
    """Scores a split, prints its figures, and writes them if asked.

    Args:
        settings: `EvaluateSettings`.

    Returns:
        Dict of the figures.
    """
    classifier = load_classifier(settings.model)
    corpora = settings.load()
    corpus = corpora[settings.split]
    check_vocabulary(settings, classifier, corpus)
    origin = read_provenance(settings.model) or {}
    # Labels that do not fit are told before hours of decoding.
    order = columns(classifier, corpus)
    clips, found, known = decode_unheard(
        settings,
        settings.model,
        corpora,
        settings.split,
        classifier.sample_rate_hz,
    )
    chunks, scores = score(classifier, clips, order, settings.batch_size)
    root = settings.file_root()
    record = corpus_records.leave_out(
        corpus_records.make(corpora, root), root, chunks.clips.failures
    )
    report = results.figures(
        settings.split,
        chunks,
        scores,
        corpus.vocabulary,
        thresholds_for(settings.split, record, origin),
    )
    print(results.format_figures(report))
    if settings.report is not None:
        found = [*leaks.of_sources(corpora), *found]
        facts = results.facts(settings, record, found)
        facts |= {
            "model": settings.model,
            "clips_trained_on": known,
            # That of the model's training: scoring draws nothing.
            "seed": origin.get("settings", {}).get("seed"),
        }
        files.write_json(settings.report, {**report, **facts})
    if settings.pictures is not None:
        showing.show_split(
            settings.pictures,
            settings.split,
            chunks.clips.corpus,
            chunks.targets,
            scores,
        )
    if chunks.clips.failures:
        print(describe_failures(chunks.clips.failures))
    return report


main = functools.partial(run_by_flags, run, EvaluateSettings, __doc__)
