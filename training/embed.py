"""Embed texts or images by every layer of an encoder of KerasHub.

    python training/embed.py --encoder bert_base_en --dataset ag_news \\
        --data-dir ag_news_csv --out runs/news

It does what `audio-tf embed` does, whose --help says what is made.
"""

from audio_tf.runs.embed import main

if __name__ == "__main__":
    main()
