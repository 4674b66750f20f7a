"""Build a corpus that you have downloaded into files that `tfds.load` reads.

    python datasets/build.py esc --source ESC-50-master

It does what `audio-tf build` does, whose --help says what is checked.
"""

import sys

from audio_tf.cli import main

if __name__ == "__main__":
    sys.exit(main(["build", *sys.argv[1:]]))
