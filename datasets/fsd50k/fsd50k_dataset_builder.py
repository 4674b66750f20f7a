"""FSD50K for TFDS, which finds a builder by its file.

python datasets/build.py fsd50k --source DIR
"""

import pathlib

from audio_tf.builders.fsd50k import Fsd50k

Fsd50k.pkg_dir_path = pathlib.Path(__file__).parent
