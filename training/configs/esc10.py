"""ESC-10, folds 1-3 for training and fold 4 for the test, mel front end.

    python training/train.py --config training/configs/esc10.py \\
        --data-dir ESC-50-master --out runs/esc10

The recipe of esc10_paper.py with a front end that begins as a mel filterbank.
The accuracy it reaches is in benchmarks/RESULTS.md.
"""


def get_config():
    return {
        "dataset": "esc10",
        "train_folds": [1, 2, 3],
        "val_folds": [],
        "test_folds": [4],
        "model": "audio_transformer_small",
        "filterbank": "mel",
        "loss": "huber",
        "schedule": "cosine",
        "warmup_epochs": 3,
        "silence_db": -60.0,
        "jitter": True,
        "epochs": 90,
    }
