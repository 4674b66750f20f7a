"""The Berlin Database of Emotional Speech, split by speaker."""

import pathlib

from audio_tf.audio.audio_files import audio_below
from audio_tf.corpora.emotions import read_names

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
        FileNotFoundError: if there is no folder `wav`, or no audio in it.
        ValueError: if a file has another name, two files are one clip, or the
            speakers do not fit; see `split_by_speaker`.
    """
    data_dir = pathlib.Path(data_dir)
    return read_names(
        data_dir,
        audio_below(data_dir / "wav"),
        rf"(?P<speaker>[0-9]{{2}})[ab][0-9]{{2}}(?P<emotion>"
        rf"[{''.join(EMOTIONS)}])[a-z]",
        EMOTIONS,
        "03a01Fa",
        (val_speakers, test_speakers),
    )
