"""Audio ALBERT on LibriSpeech as "Input-independent Attention" has it.

    python training/pretrain.py --config training/configs/librispeech_ssl.py \\
        --data-dir LibriSpeech --attention full --out runs/full

Section 4.1 of arXiv 2006.05174 says train-clean-360, 500,000 steps of 50
utterances, LAMB and 5e-5. It refers to "Audio ALBERT" for the rest, which is
taken from that paper's code, s3prl's branch AlbertNew: features, masking,
warm-up over 10 % and decay, clipping at 10. These are the script's defaults
too. Which optimizer was used is open (`--optimizer`): the text says `lamb`, the
code runs `adamw`.
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
        # 3075 numbers a frame would fill disks.
        "feature_cache": False,
    }
