"""Synthetic sound events, the model that `make demo` tries first.

    python training/train.py --config training/configs/synthetic_events.py \\
        --data-dir synthetic --out runs/synthetic_events

The corpus is written where it is not there. The released
`audio_transformer_synthetic_events` comes from it.
"""


def get_config():
    return {
        "dataset": "synthetic",
        "recipe": "strong",
        "jitter": True,
        "mixing": "mixup",
        "epochs": 120,
    }
