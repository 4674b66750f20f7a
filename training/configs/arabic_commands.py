"""Arabic Speech Commands on its official splits: 40 words, unseen speakers.

    for SEED in 0 1; do
        python training/train.py --config training/configs/arabic_teacher.py \\
            --data-dir arabic-speech-commands-dataset --seed $SEED \\
            --out runs/arabic_teacher_$SEED
    done
    python training/train.py --config training/configs/arabic_commands.py \\
        --data-dir arabic-speech-commands-dataset --out runs/arabic_commands

A transformer without convolution learns for long, from mixes of clips in many
voices, and beside the labels from two convolutional networks that were trained
on the same clips. The settings were chosen on the validation split. The
released `audio_transformer_arabic_commands` comes from an earlier, longer
training; what both reach, and in which time, is in benchmarks/RESULTS.md.
"""


def get_config():
    return {
        "dataset": "arabic_speech_commands",
        "recipe": "strong",
        "model": "audio_transformer_mel_base",
        "learning_rate": 1e-3,
        "augmentation": "voice_wide",
        "mixing": "mixup",
        "teachers": [
            "runs/arabic_teacher_0/preset",
            "runs/arabic_teacher_1/preset",
        ],
        "teacher_share": 0.9,
        "epochs": 150,
        "monitor": "val_accuracy",
    }
