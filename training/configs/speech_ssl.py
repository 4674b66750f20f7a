"""A small Audio ALBERT on the training clips of several corpora of speech.

    audio-tf gather speech fsdd=free-spoken-digit-dataset \\
        arabic_speech_commands=arabic-speech-commands-dataset
    python training/pretrain.py --config training/configs/speech_ssl.py \\
        --data-dir speech --out runs/speech

Features, masking and target of s3prl's HEAD; three applications of one layer
of 192 with the papers' 12 heads. The released `audio_albert_speech` comes from
it.
"""


def get_config():
    return {
        "dataset": "folder",
        "features": "s3prl",
        "target": "input",
        # A few are twice as long as all others, which would be padded.
        "max_s": 1.1,
        "model": "audio_albert_3",
        "model_kwargs": {
            "num_heads": 12,
            "key_dim": 16,
            "hidden_dim": 192,
            "intermediate_dims": [768],
        },
        "made_for_frames": 256,
        "masking": "s3prl",
        "optimizer": "adamw",
        "learning_rate": 1e-3,
        "steps": 3000,
        "batch_size": 32,
        "save_every": 100,
        "feature_cache": True,
        "picture_every": 5,
    }
