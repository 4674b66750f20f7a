"""ESC-10, folds 1-4 for training: the released model, fold 5 unseen.

    python training/train.py --config training/configs/esc10_release.py \\
        --data-dir ESC-50-master --out runs/esc10_release

The settings are those of esc10.py, which were chosen on folds 1-4.
"""


def get_config():
    return {
        "dataset": "esc10",
        "train_folds": [1, 2, 3, 4],
        "val_folds": [],
        "test_folds": [],
        "recipe": "strong",
        "silence_db": -60.0,
        "jitter": True,
        "epochs": 90,
    }
