"""The papers' probes on train-clean-100, with CPC's phones and lists.

    python training/probe.py --config training/configs/librispeech_probe.py \\
        --data-dir LibriSpeech --model runs/full/preset --out runs/full_probe \\
        --alignment converted_aligned_phones.txt \\
        --train-list train_split.txt --test-list test_split.txt

The paper's phones are of another set, over train-clean-360, which was not
published; anyone can have CPC's 41 phones. Not run: the full corpus.
"""


def get_config():
    return {
        "dataset": "librispeech",
        "train_subsets": ["train-clean-100"],
        "learning_rate": 1e-3,
        "epochs": 40,
        "batch_size": 25,
        # Frames of 37.5 ms over labels of 10 ms.
        "by_time": True,
    }
