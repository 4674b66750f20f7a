"""Arabic Speech Commands for TFDS, which finds a builder by its file.

    python datasets/build.py arabic_speech_commands --source DIR

The class is in audio_tf, so that the wheel has it too.
"""

import pathlib

from audio_tf.builders.arabic_speech_commands import ArabicSpeechCommands

ArabicSpeechCommands.code_path = pathlib.Path(__file__)
ArabicSpeechCommands.pkg_dir_path = ArabicSpeechCommands.code_path.parent
