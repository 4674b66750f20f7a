"""LibriSpeech with phones for TFDS, which finds a builder by its file.

    python datasets/build.py librispeech_phones --source DIR

The class is in audio_tf, so that the wheel has it too.
"""

import pathlib

from audio_tf.builders.librispeech_phones import LibrispeechPhones

LibrispeechPhones.code_path = pathlib.Path(__file__)
LibrispeechPhones.pkg_dir_path = LibrispeechPhones.code_path.parent
