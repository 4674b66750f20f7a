"""Rebuild the tables of the papers on a corpus of your own.

    python training/reproduce.py ssl \\
        --pretrain-config training/configs/librispeech_ssl.py \\
        --probe-config training/configs/librispeech_probe.py \\
        --alignment converted_aligned_phones.txt \\
        --train-list train_split.txt --test-list test_split.txt \\
        --data-dir LibriSpeech --out runs/table2

`ssl` is Table 2 of "Input-independent Attention Weights Are Expressive
Enough" (arXiv 2006.05174): an Audio ALBERT is pre-trained with each attention,
frozen, and probed for speakers and phones. Each row is two commands, which are
printed. Rows that are finished are kept: the same command goes on where it
stopped. --out gets table2.md, table2.json and a folder for each row. The table
says of each row whether its attention was causal; `"causal"` in the config of
the pre-training holds that equal where the attentions can be.
"""

from audio_tf.runs.reproduce import main

if __name__ == "__main__":
    main()
