"""Train an audio classifier from files to a preset and a SavedModel.

    python training/train.py --config training/configs/demo.py
    python training/train.py --dataset fsd50k --data-dir FSD50K --out runs/fsd
    python training/train.py --out runs/fsd --resume

The folder --out gets config.json, history.csv, last.keras and best.keras,
TensorBoard logs, the best model as a KerasHub preset, its figures (val.json,
test.json), learning curves, confusion matrices, figures of each class and
lists of errors, and with --export a SavedModel for TensorFlow Serving. Where
clips have any number of labels, thresholds.json has the score from which on a
clip is said to have each, calibrated on validation. --no-test leaves the test
split out while settings are chosen; `audio-tf evaluate` scores it then.
"""

from audio_tf.runs.train import main

if __name__ == "__main__":
    main()
