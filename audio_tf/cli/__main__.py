"""`python -m audio_tf.cli`, for where no `audio-tf` is on the path."""

import sys

from audio_tf.cli import main

sys.exit(main())
