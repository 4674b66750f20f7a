"""Evaluate a preset or a SavedModel on a split of a corpus, clip by clip.

    audio-tf evaluate --model runs/fsd50k/preset \\
        --dataset fsd50k --data-dir FSD50K --split test --report test.json

A clip's scores are the mean over its chunks. Prints a table; --report gets all
figures as JSON, with the average precision of each class.
"""

import dataclasses

from audio_tf import data, files, metrics
from audio_tf.console import errors_in_one_line
from audio_tf.export import load_classifier
from audio_tf.runs import provenance
from audio_tf.runs.corpus_settings import ReportSettings
from audio_tf.runs.flags import parse
from audio_tf.runs.settings import shared


@dataclasses.dataclass
class EvaluateSettings(ReportSettings):
    """What is evaluated on what."""

    model: str = shared("model", "runs/train/preset")
    batch_size: int = shared("batch_size", 64)


def run(settings):
    """Prints the figures, and writes them if asked."""
    classifier = load_classifier(settings.model)
    corpus = settings.load()[settings.split]
    # Whatever does not fit, before hours of decoding.
    order = provenance.column_order(
        classifier.labels, corpus.vocabulary, classifier.num_classes
    )
    if classifier.labels is None:
        print("the model knows no labels; taken as the corpus' in their order")
    elif list(classifier.labels) != list(corpus.vocabulary):
        print("the model has the corpus' labels in another order; mapped")
    clips = data.prepare(
        corpus,
        classifier.sample_rate_hz,
        name=settings.split,
        **settings.prepare_arguments(),
    )
    chunks = data.Chunks(
        clips, classifier.chunk_s, silence_db=classifier.silence_db
    )
    scores = data.score_clips(
        classifier, chunks, settings.batch_size, verbose=0
    )
    report = metrics.evaluate(
        chunks.targets, scores[:, order], corpus.vocabulary
    )
    print(metrics.format_report(report))
    if settings.report is not None:
        files.write_json(settings.report, report)
    if clips.failures:
        print(data.describe(clips.failures))


def main(argv=None, prog=None):
    """Evaluates as flags say.

    Args:
        argv: list of str, the flags; those of the process if `None`.
        prog: str, the program's name in usage and errors; the script's if
            `None`.
    """
    settings = parse(EvaluateSettings, __doc__, argv, prog=prog)
    with errors_in_one_line(argv, prog=prog):
        run(settings)


if __name__ == "__main__":
    main()
