"""ESC-50 and ESC-10 for TFDS, which finds a builder by its file.

python datasets/build.py esc --source DIR
"""

import pathlib

from audio_tf.builders.esc import Esc

Esc.pkg_dir_path = pathlib.Path(__file__).parent
