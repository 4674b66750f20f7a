"""The papers' probes on spoken digits.

    python training/probe.py --config training/configs/fsdd_probe.py \\
        --data-dir fsdd --model runs/fsdd/preset --out runs/fsdd_probe
"""


def get_config():
    return {
        "dataset": "fsdd",
        "learning_rate": 4e-3,
        "epochs": 30,
        "hidden_dim": 192,
        "batch_size": 32,
    }
