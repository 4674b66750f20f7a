"""The training of each row of the leaderboard of attentions: spoken commands.

    audio-tf compare --train-config training/configs/leaderboard.py \\
        --causality no yes --data-dir arabic-speech-commands-dataset \\
        --out runs/leaderboard_commands
    python training/train.py --config training/configs/leaderboard.py \\
        --data-dir arabic-speech-commands-dataset --out runs/one_row

Small and short, so that each attention has several seeds: accuracies are to be
compared with one another, not with the released model.
"""


def get_config():
    return {
        "dataset": "arabic_speech_commands",
        "recipe": "strong",
        "model_kwargs": {"num_layers": 2},
        "augmentation": "none",
        "epochs": 4,
        "monitor": "val_accuracy",
    }
