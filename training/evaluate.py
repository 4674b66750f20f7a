"""Evaluate a preset or a SavedModel on a split of a corpus, clip by clip.

    python training/evaluate.py --model runs/fsd50k/preset \\
        --dataset fsd50k --data-dir FSD50K --split test --out test.json

A clip's scores are the mean over its chunks. Prints a table; --out gets all
figures as JSON, with the average precision of each class.
"""

import dataclasses
import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from audio_tf import cli, data, metrics  # noqa: E402
from audio_tf.settings import DataSettings, parse, setting  # noqa: E402


@dataclasses.dataclass
class EvaluateSettings(DataSettings):
    """What is evaluated on what."""

    model: str = setting("runs/train/preset", "preset or exported SavedModel")
    split: str = setting("test", "which split", ["train", "val", "test"])
    batch_size: int = setting(64, "chunks per step")
    out: str | None = setting(None, "JSON file for all figures")


def main(argv=None):
    settings = parse(EvaluateSettings, __doc__, argv)
    classifier = cli.load_classifier(settings.model)
    corpus = settings.load()[settings.split]
    if classifier.labels is not None and classifier.labels != corpus.vocabulary:
        sys.exit(
            "The model's labels are not the corpus' labels in their order. "
            f"Received: {len(classifier.labels)} and {len(corpus.vocabulary)}"
        )
    clips = data.prepare(
        corpus,
        classifier.sample_rate_hz,
        name=settings.split,
        **settings.prepare_arguments(),
    )
    chunks = data.Chunks(
        clips, classifier.chunk_s, silence_db=classifier.silence_db
    )
    scores = data.score_clips(classifier, chunks, settings.batch_size)
    report = metrics.evaluate(chunks.targets, scores, corpus.vocabulary)
    print(metrics.format_report(report))
    if settings.out is not None:
        pathlib.Path(settings.out).write_text(json.dumps(report, indent=2))
    if clips.failures:
        print(data.describe(clips.failures))


if __name__ == "__main__":
    main()
