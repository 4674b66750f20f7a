"""ESC-10, folds 1-3 for training and fold 4 for the test; fold 5 is not used.

    python training/train.py --config training/configs/esc10.py \\
        --data-dir ESC-50-master --out runs/esc10

A transformer without convolution, which learns from a convolutional network
that was trained on the same clips by `esc10_teacher.py`, and from their mixes,
for long. The accuracy it reaches is in benchmarks/RESULTS.md.
"""


def get_config():
    return {
        "dataset": "esc10",
        "train_folds": [1, 2, 3],
        "val_folds": [],
        "test_folds": [4],
        # Without fold 5, and for one of five tests alone.
        "other_splits": True,
        "recipe": "strong",
        "mixing": "between_class",
        "teachers": ["runs/esc10_teacher/preset"],
        "teacher_share": 0.9,
        "silence_db": -60.0,
        "jitter": True,
        "epochs": 500,
    }
