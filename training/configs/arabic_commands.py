"""Arabic Speech Commands: the model of `arabic_base.py`, taught further.

    python training/train.py --config training/configs/arabic_commands.py \\
        --data-dir arabic-speech-commands-dataset \\
        --model runs/arabic_base/preset --out runs/arabic_commands

It learns for long, from mixes of clips in many voices, and from a convolutional
network that was trained on the same clips beside the labels. The released
`audio_transformer_arabic_commands` comes from it, but began with an earlier
release; what it reaches is in benchmarks/RESULTS.md.
"""


def get_config():
    return {
        "dataset": "arabic_speech_commands",
        "recipe": "strong",
        "learning_rate": 1e-3,
        "augmentation": "voice_wide",
        "mixing": "mixup",
        "teachers": ["runs/arabic_teacher/preset"],
        "teacher_share": 0.9,
        "epochs": 130,
        "monitor": "val_accuracy",
    }
