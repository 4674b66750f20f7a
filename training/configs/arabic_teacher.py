"""Arabic Speech Commands: the convolutional teachers of the command model.

    python training/train.py --config training/configs/arabic_teacher.py \\
        --data-dir arabic-speech-commands-dataset --seed 0 \\
        --out runs/arabic_teacher_0

Seeds 0 and 1 are not released: `arabic_commands.py` learns from both and has
no convolution.
"""


def get_config():
    return {
        "dataset": "arabic_speech_commands",
        "recipe": "strong",
        "model": "mel_resnet",
        "pooling": "mean",
        "learning_rate": 3e-3,
        "augmentation": "voice_wide",
        "mixing": "mixup",
        "epochs": 40,
        "monitor": "val_accuracy",
    }
