"""Synthetic sound events, from nothing to an exported classifier.

    python training/train.py --config training/configs/demo.py --out demo

`make demo` runs it. What it reaches on 2 cores is in benchmarks/RESULTS.md.
"""


def get_config():
    return {
        "dataset": "synthetic",
        "recipe": "paper",
        "model": "audio_transformer_small",
        "filterbank": "mel",
        "loss": "binary_crossentropy",
        "schedule": "cosine",
        "warmup_share": 0.07,
        "epochs": 30,
        "jitter": True,
        "export": True,
    }
