"""Train an audio classifier from files to a preset and a SavedModel.

    python training/train.py --config training/configs/demo.py
    python training/train.py --dataset fsd50k --data-dir FSD50K --out runs/fsd
    python training/train.py --out runs/fsd --resume

The folder --out gets config.json, history.csv, last.keras and best.keras,
TensorBoard logs, the best model as a KerasHub preset, its figures on the test
split (test.json), and with --export a SavedModel for TensorFlow Serving.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from audio_tf.runs.train import main  # noqa: E402

if __name__ == "__main__":
    main()
