"""Audio ALBERT on LibriSpeech as "Input-independent Attention" has it.

    python training/pretrain.py --config training/configs/librispeech_ssl.py \\
        --data-dir LibriSpeech --attention full --out runs/full

Section 4.1 of arXiv 2006.05174 (train-clean-360, 500,000 steps of 50
utterances, LAMB, 5e-5); what it leaves to "Audio ALBERT" is as that one's
code (s3prl's branch AlbertNew): features, masking, warm-up over 10 % and
decay, clipping at 10. These are the script's defaults too. Which LAMB was
used is open (`--optimizer`): `lamb` is the text's, `adamw` what the code runs.
Not run: the full corpus and 500,000 steps.
"""


def get_config():
    return {
        "dataset": "librispeech",
        "train_subsets": ["train-clean-360"],
        "features": "paper",
        "target": "spectrogram",
        "model": "audio_albert_6",
        "masking": "paper",
        "made_for_frames": 1000,
        "max_s": 37.5,
        "optimizer": "lamb",
        "learning_rate": 5e-5,
        "warmup": 0.1,
        "clip_norm": 10.0,
        "batch_size": 50,
        "steps": 500_000,
        # 3075 numbers a step would fill disks.
        "feature_cache": False,
    }
