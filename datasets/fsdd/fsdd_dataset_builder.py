"""The Free Spoken Digit Dataset for TFDS, which finds a builder by its file.

python datasets/build.py fsdd --source DIR
"""

import pathlib

from audio_tf.builders.fsdd import Fsdd

Fsdd.pkg_dir_path = pathlib.Path(__file__).parent
