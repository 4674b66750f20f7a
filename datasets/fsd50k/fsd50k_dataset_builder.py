"""FSD50K for TFDS, which finds a builder by its file.

    python datasets/build.py fsd50k --source DIR

The class is in audio_tf, so that the wheel has it too.
"""

import pathlib

from audio_tf.builders.fsd50k import Fsd50k

Fsd50k.code_path = pathlib.Path(__file__)
Fsd50k.pkg_dir_path = Fsd50k.code_path.parent
