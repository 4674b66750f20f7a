"""ESC-50, folds 1-3 for training and fold 4 for the test; fold 5 is not used.

    python training/train.py --config training/configs/esc50.py \\
        --data-dir ESC-50-master --out runs/esc50

A transformer without convolution, which learns from a convolutional network
that was trained on the same clips by `esc50_teacher.py`, and from their mixes.
The accuracy it reaches is in benchmarks/RESULTS.md.
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
        "model": "audio_transformer_mel_base",
        "mixing": "between_class",
        "teachers": ["runs/esc50_teacher/preset"],
        "teacher_share": 0.9,
        "silence_db": -60.0,
        "jitter": True,
        "epochs": 80,
    }
