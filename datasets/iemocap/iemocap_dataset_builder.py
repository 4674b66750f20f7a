"""IEMOCAP for TFDS, which finds a builder by its file.

python datasets/build.py iemocap --source DIR
"""

import pathlib

from audio_tf.builders.iemocap import Iemocap

Iemocap.pkg_dir_path = pathlib.Path(__file__).parent
