"""Pre-train an Audio ALBERT to fill in masked frames of unlabelled speech.

    python training/pretrain.py --config training/configs/librispeech_ssl.py \\
        --data-dir LibriSpeech --attention full --out runs/full
    python training/pretrain.py --out runs/full --resume

The folder --out gets config.json, history.csv, last.keras, TensorBoard logs
with pictures of what is filled in, and preset/, the encoder from waveform to
frames, which `audio-tf probe`, AudioClassifier and `audio-tf inspect` take;
it is written anew with the pictures.
"""

from audio_tf.runs.pretrain import main

if __name__ == "__main__":
    main()
