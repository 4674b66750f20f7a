"""Arabic Speech Commands: the convolutional teacher of the command model.

    python training/train.py --config training/configs/arabic_teacher.py \\
        --data-dir arabic-speech-commands-dataset --out runs/arabic_teacher

It is not released: `arabic_commands.py` learns from it and has no
convolution.
"""


def get_config():
    return {
        "dataset": "arabic_speech_commands",
        # That of the network which taught the released model.
        "seed": 1,
        "recipe": "strong",
        "model": "mel_resnet",
        "pooling": "mean",
        "learning_rate": 3e-3,
        "augmentation": "voice_wide",
        "mixing": "mixup",
        "epochs": 40,
        "monitor": "val_accuracy",
    }
