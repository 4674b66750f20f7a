"""ESC-10, folds 1-3 for training and fold 4 for the test; fold 5 is not used.

    python training/train.py --config training/configs/esc10.py \\
        --data-dir ESC-50-master --out runs/esc10

The recipe `strong`. The accuracy it reaches is in benchmarks/RESULTS.md.
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
        "silence_db": -60.0,
        "jitter": True,
        "epochs": 90,
    }
