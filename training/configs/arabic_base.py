"""Arabic Speech Commands on its official splits: 40 words, unseen speakers.

    python training/train.py --config training/configs/arabic_base.py \\
        --data-dir arabic-speech-commands-dataset --out runs/arabic_base

The first of three: `arabic_teacher.py` and `arabic_commands.py` follow. Its
validation split chose the settings.
"""


def get_config():
    return {
        "dataset": "arabic_speech_commands",
        "recipe": "strong",
        "model": "audio_transformer_mel_base",
        "learning_rate": 1e-3,
        "augmentation": "voice",
        "epochs": 80,
        "monitor": "val_accuracy",
    }
