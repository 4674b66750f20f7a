"""The training of each row of the leaderboard of attentions: ESC-50.

    audio-tf compare --train-config training/configs/leaderboard_esc50.py \\
        --score-split test --data-dir ESC-50-master \\
        --out runs/leaderboard_esc50
    python training/train.py --config training/configs/leaderboard_esc50.py \\
        --data-dir ESC-50-master --out runs/one_row

Small and short as `leaderboard.py`: folds 1-3 for training, fold 4 for the
test; fold 5 is not used.
"""


def get_config():
    return {
        "dataset": "esc50",
        "train_folds": [1, 2, 3],
        "val_folds": [],
        "test_folds": [4],
        # Without fold 5, and for one of five tests alone.
        "other_splits": True,
        "recipe": "strong",
        "model_kwargs": {"num_layers": 2},
        "augmentation": "none",
        "silence_db": -60.0,
        "jitter": True,
        "epochs": 10,
    }
