"""Arabic Speech Commands for TFDS, which finds a builder by its file.

python datasets/build.py arabic_speech_commands --source DIR
"""

import pathlib

from audio_tf.builders.arabic_speech_commands import ArabicSpeechCommands

ArabicSpeechCommands.pkg_dir_path = pathlib.Path(__file__).parent
