"""Train a Gaussian adaptive transformer on embeddings of a frozen encoder.

    python training/emotion.py --model runs/ssl/preset --dataset emodb \\
        --data-dir EmoDB --module gaam_v1 --out runs/emotion

It does what `audio-tf emotion` does, whose --help says what is made.
"""

from audio_tf.runs.emotion import main

if __name__ == "__main__":
    main()
