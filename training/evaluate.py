"""Evaluate a preset or a SavedModel on a split of a corpus, clip by clip.

    python training/evaluate.py --model runs/fsd50k/preset \\
        --dataset fsd50k --data-dir FSD50K --split test --report test.json

A clip's scores are the mean over its chunks. A model is not scored on clips
that it was trained on, but for --split train. Prints a table; --report gets
all figures as JSON, with the average precision of each class and, where
training has calibrated thresholds, F1 at these; --pictures a folder with
errors.csv, the confusion matrix and the figures of each class.
"""

from audio_tf.runs.evaluate import main

if __name__ == "__main__":
    main()
