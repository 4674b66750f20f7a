"""Spoken digits: the convolutional teacher of `fsdd_digits.py`.

    python training/train.py --config training/configs/fsdd_digits_teacher.py \\
        --data-dir free-spoken-digit-dataset --out runs/fsdd_digits_teacher

It is not released: `fsdd_digits.py` learns from it and has no convolution.
"""


def get_config():
    return {
        "dataset": "fsdd",
        "classes": "digits",
        "recipe": "strong",
        "model": "mel_resnet",
        "model_kwargs": {"sample_rate_hz": 8_000, "num_mel_bins": 40},
        "pooling": "mean",
        "learning_rate": 3e-3,
        "chunk_s": 0.0,
        "augmentation": "sound",
        "mixing": "mixup",
        "epochs": 40,
        "monitor": "val_accuracy",
    }
