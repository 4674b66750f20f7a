"""ESC-50 and ESC-10 for TFDS, which finds a builder by its file.

    python datasets/build.py esc --source DIR

The class is in audio_tf, so that the wheel has it too.
"""

import pathlib

from audio_tf.builders.esc import Esc

Esc.code_path = pathlib.Path(__file__)
Esc.pkg_dir_path = Esc.code_path.parent
