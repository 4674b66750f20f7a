"""Train the same model with each attention, and compare what they reach.

    python training/compare.py \\
        --train-config training/configs/esc10_paper.py \\
        --data-dir ESC-50-master --score-split test --out runs/attentions

It does what `audio-tf compare` does, whose --help says what is made.
"""

from audio_tf.runs.compare import main

if __name__ == "__main__":
    main()
