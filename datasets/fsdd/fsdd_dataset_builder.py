"""The Free Spoken Digit Dataset for TFDS, which finds a builder by its file.

    python datasets/build.py fsdd --source DIR

The class is in audio_tf, so that the wheel has it too.
"""

import pathlib

from audio_tf.builders.fsdd import Fsdd

Fsdd.code_path = pathlib.Path(__file__)
Fsdd.pkg_dir_path = Fsdd.code_path.parent
