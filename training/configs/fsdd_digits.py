"""Spoken digits: recordings 10-49 train, 5-9 validate, 0-4 are the test.

    python training/train.py --config training/configs/fsdd_digits.py \\
        --data-dir free-spoken-digit-dataset --out runs/fsdd_digits

A transformer without convolution, which learns for long from the network of
`fsdd_digits_teacher.py` and from mixes of clips. The released
`audio_transformer_fsdd_digits` comes from it.
"""


def get_config():
    return {
        "dataset": "fsdd",
        "classes": "digits",
        "recipe": "strong",
        "model_kwargs": {"sample_rate_hz": 8_000, "frontend_filters": 40},
        "chunk_s": 0.0,
        "augmentation": "sound",
        "mixing": "mixup",
        "teachers": ["runs/fsdd_digits_teacher/preset"],
        "teacher_share": 0.9,
        "epochs": 300,
        "monitor": "val_accuracy",
    }
