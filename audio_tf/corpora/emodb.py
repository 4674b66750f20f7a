"""The Berlin Database of Emotional Speech, split by speaker."""

import pathlib
import re

from audio_tf.audio.audio_files import audio_below
from audio_tf.corpora.corpus import Corpus, check_splits, split_by_speaker
from audio_tf.corpora.speech_corpus import collect

# By the first letter of the German word, which files are named after: Wut,
# Langeweile, Ekel, Angst, Freude, Trauer, neutral.
EMOTIONS = {
    "W": "anger",
    "L": "boredom",
    "E": "disgust",
    "A": "fear",
    "F": "happiness",
    "T": "sadness",
    "N": "neutral",
}


def read_emodb(data_dir, val_speakers=(), test_speakers=()):
    """Reads the Berlin Database of Emotional Speech (EmoDB) by its file names.

    ```python
    splits = read_emodb("EmoDB", val_speakers=["14"], test_speakers=["15"])
    ```

    A clip is `wav/{speaker}{text}{emotion}{version}.wav`, or of another
    suffix of audio: `03a01Fa` is speaker 03 with text a01, happy (Freude), in
    version a. There is no official split. The usual protocol leaves one
    speaker out at a time, who is the test.

    Args:
        data_dir: the folder that holds `wav/`.
        val_speakers: list of str, the speakers of the split val, for example
            `["15"]`.
        test_speakers: list of str, the speakers of the split test.

    Returns:
        Dict of `Corpus` by split: train, val, test. Without speakers, val and
        test have no clips. The vocabulary is the seven emotions, sorted.

    Raises:
        FileNotFoundError: if there is no folder `wav`.
        ValueError: if a file has another name, two files are one clip, or the
            speakers do not fit; see `split_by_speaker`.
    """
    data_dir = pathlib.Path(data_dir)
    found, labels = [], []
    for file in audio_below(data_dir / "wav"):
        match = re.fullmatch(
            rf"([0-9]{{2}})[ab][0-9]{{2}}([{''.join(EMOTIONS)}])[a-z]",
            file.stem,
        )
        if match is None:
            raise ValueError(
                f"{file}: must be named as 03a01Fa is: speaker, text, one of "
                f"{''.join(EMOTIONS)} for the emotion, version. "
                f"Received: {file.stem!r}"
            )
        found.append((file, file.stem, match[1]))
        labels.append([EMOTIONS[match[2]]])
    corpus = Corpus(collect(found).files, labels, sorted(EMOTIONS.values()))
    speakers = [speaker for *_, speaker in found]
    return check_splits(
        data_dir,
        split_by_speaker(
            data_dir, corpus, speakers, val_speakers, test_speakers
        ),
    )
