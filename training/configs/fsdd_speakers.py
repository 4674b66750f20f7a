"""Who speaks a digit: recordings 10-49 train, 5-9 validate, 0-4 test.

    python training/train.py --config training/configs/fsdd_speakers.py \\
        --data-dir free-spoken-digit-dataset --out runs/fsdd_speakers

The released `audio_transformer_fsdd_speakers` comes from it.
"""


def get_config():
    return {
        "dataset": "fsdd",
        "classes": "speakers",
        "recipe": "strong",
        # The mean over a clip tells the speaker's voice and microphone.
        "model_kwargs": {
            "sample_rate_hz": 8_000,
            "frontend_filters": 40,
            "subtract_mean": False,
        },
        "chunk_s": 0.0,
        "augmentation": "none",
        "epochs": 40,
        # All are right from the sixth epoch on.
        "monitor": "val_loss",
    }
