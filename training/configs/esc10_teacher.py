"""ESC-10, folds 1-3 for training: the convolutional teacher of `esc10.py`.

    python training/train.py --config training/configs/esc10_teacher.py \\
        --data-dir ESC-50-master --out runs/esc10_teacher
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
        "model": "mel_resnet",
        "pooling": "mean",
        "learning_rate": 3e-3,
        "mixing": "between_class",
        "silence_db": -60.0,
        "jitter": True,
        "epochs": 120,
    }
