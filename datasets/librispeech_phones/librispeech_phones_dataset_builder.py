"""LibriSpeech with phones for TFDS, which finds a builder by its file.

python datasets/build.py librispeech_phones --source DIR
"""

import pathlib

from audio_tf.builders.librispeech_phones import LibrispeechPhones

LibrispeechPhones.pkg_dir_path = pathlib.Path(__file__).parent
