"""Arabic Speech Commands: the model of `arabic_base.py`, taught further.

    python training/train.py --config training/configs/arabic_commands.py \\
        --data-dir arabic-speech-commands-dataset \\
        --model runs/arabic_base/preset \\
        --teachers runs/arabic_teacher/preset --out runs/arabic_commands

Mixes of clips, and a convolutional network that was trained on the same clips
beside the labels. The released `audio_transformer_arabic_commands` comes from
it; what it reaches is in benchmarks/RESULTS.md.
"""


def get_config():
    return {
        "dataset": "arabic_speech_commands",
        "recipe": "strong",
        "learning_rate": 5e-4,
        "augmentation": "voice",
        "mixing": "mixup",
        "epochs": 16,
        "monitor": "val_accuracy",
    }
