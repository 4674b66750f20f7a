"""ESC-10, folds 1-3 for training and fold 4 for the test, the paper's recipe.

    python training/train.py --config training/configs/esc10_paper.py \\
        --data-dir ESC-50-master --out runs/esc10_paper

Random front end, Huber loss, and Adam, whose learning rate is the one thing
that the paper tunes: "Audio Transformers" (arXiv 2105.00335), section 4. The
rate's course and the chunks that are drawn anew each epoch, which the paper
leaves open, were chosen on fold 3 after training on folds 1 and 2. The
accuracy it reaches is in benchmarks/RESULTS.md.
"""


def get_config():
    return {
        "dataset": "esc10",
        "train_folds": [1, 2, 3],
        "val_folds": [],
        "test_folds": [4],
        "model": "audio_transformer_small",
        "loss": "huber",
        "learning_rate": 1e-3,
        "schedule": "cosine",
        "warmup_epochs": 3,
        "jitter": True,
        "silence_db": -60.0,
        "epochs": 90,
    }
