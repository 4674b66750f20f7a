"""Arabic Speech Commands on its official splits: 40 words, unseen speakers.

    python training/train.py --config training/configs/arabic_commands.py \\
        --data-dir arabic-speech-commands-dataset --out runs/arabic_commands

Its validation split chose the settings. The released
`audio_transformer_arabic_commands` comes from it; what it reaches is in
benchmarks/RESULTS.md.
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
