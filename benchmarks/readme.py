"""The accuracy of the README's lines that train, on ESC-10.

    python benchmarks/readme.py DATA/esc10 --fold 4

The block of the README with `.fit(` runs as it stands, in a folder whose
`sounds` has the clips of the others of folds 1-4, a folder per class. The
model that it saves is scored on the clips of --fold, each once, by `evaluate`.
"""

import argparse
import json
import os
import pathlib
import re
import tempfile
import time

import keras

from audio_tf import corpora
from audio_tf.models import AudioClassifier

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"
# Fold 5 is for others to measure.
FOLDS = (1, 2, 3, 4)
SAVED = re.compile(r'\.save_to_preset\("(\w+)"\)')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data_dir", help="ESC-10, in the folders of a release")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--fold", type=int, default=4, choices=FOLDS, help="fold to score"
    )
    arguments = parser.parse_args()
    others = [fold for fold in FOLDS if fold != arguments.fold]
    splits = corpora.load_corpus(
        "esc10",
        arguments.data_dir,
        folds={"train": others, "val": [], "test": [arguments.fold]},
    )
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (lines,) = [block for block in blocks if ".fit(" in block]
    os.chdir(tempfile.mkdtemp())
    place("sounds", splits["train"])
    keras.utils.set_random_seed(arguments.seed)
    start = time.perf_counter()
    exec(lines, {})
    seconds = time.perf_counter() - start
    model = AudioClassifier.from_preset(SAVED.search(lines)[1])
    model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    test = splits["test"]
    names = [label for (label,) in test.labels]
    found = model.evaluate(
        [str(file) for file in test.files], names, return_dict=True, verbose=0
    )
    print(json.dumps({"clips": len(names), "seconds": seconds, **found}))


def place(folder, corpus):
    """Links the files of a corpus into a folder per class."""
    for file, (label,) in zip(corpus.files, corpus.labels, strict=True):
        place = pathlib.Path(folder, label)
        place.mkdir(parents=True, exist_ok=True)
        (place / file.name).symlink_to(file.resolve())


if __name__ == "__main__":
    main()
