"""IEMOCAP for TFDS, which finds a builder by its file.

    python datasets/build.py iemocap --source DIR

The class is in audio_tf, so that the wheel has it too.
"""

import pathlib

from audio_tf.builders.iemocap import Iemocap

Iemocap.code_path = pathlib.Path(__file__)
Iemocap.pkg_dir_path = Iemocap.code_path.parent
