"""Rebuild the tables of the papers on a corpus of your own.

    python training/reproduce.py ssl \\
        --pretrain-config training/configs/librispeech_ssl.py \\
        --probe-config training/configs/librispeech_probe.py \\
        --alignment converted_aligned_phones.txt \\
        --train-list train_split.txt --test-list test_split.txt \\
        --data-dir LibriSpeech --out runs/table2
    python training/reproduce.py fsd50k --data-dir FSD50K --out runs/table1

It does what `audio-tf reproduce` does, whose --help says what is made.
"""

from audio_tf.runs.reproduce import main

if __name__ == "__main__":
    main()
