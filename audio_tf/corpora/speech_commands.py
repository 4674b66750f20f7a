"""Google Speech Commands in the folders of its release."""

import pathlib

from audio_tf.audio.audio_files import audio_below
from audio_tf.corpora.corpus import Corpus, check_splits
from audio_tf.corpora.lists import read_lines
from audio_tf.ops.checks import closest

# Long recordings without words, which are no clips of the corpus.
BACKGROUND_NOISE = "_background_noise_"
# Version 0.02 has all of them, version 0.01 all but backward, follow,
# forward, learn and visual.
WORDS = (
    *("backward", "bed", "bird", "cat", "dog", "down", "eight", "five"),
    *("follow", "forward", "four", "go", "happy", "house", "learn", "left"),
    *("marvin", "nine", "no", "off", "on", "one", "right", "seven", "sheila"),
    *("six", "stop", "three", "tree", "two", "up", "visual", "wow", "yes"),
    "zero",
)
LISTS = {"val": "validation_list.txt", "test": "testing_list.txt"}


def read_speech_commands(data_dir):
    """Reads Google Speech Commands, version 0.01 or 0.02, as released.

    ```python
    splits = read_speech_commands("speech_commands_v0.02")
    splits["test"].vocabulary
    ```

    There is a folder for each word (arXiv 1804.03209); `validation_list.txt`
    and `testing_list.txt` name the clips `{word}/{file}` of these splits, and
    all others are for training. Each word is a class. Clips are never taken
    from `_background_noise_`.

    The task of twelve classes (ten words, `_silence_` and `_unknown_`) is not
    offered: its silence is mixed from zeros and noise rather than read from
    files, and its unknown words are drawn in the order that a file system
    happens to list them in.

    Args:
        data_dir: the folder that holds the folders of words and both lists.

    Returns:
        Dict of `Corpus` by split: train, val, test. The vocabulary is the
        words whose folders have audio, sorted; the sources are the speakers.

    Raises:
        FileNotFoundError: if the folder or a list is missing.
        ValueError: if audio lies elsewhere than in the folder of a known
            word, or a list is empty or names a clip that is not there or is
            listed already; see also `check_splits`.
    """
    data_dir = pathlib.Path(data_dir)
    words = {}
    for file in audio_below(data_dir):
        parts = file.relative_to(data_dir).parts
        if parts[0] == BACKGROUND_NOISE:
            continue
        if len(parts) != 2 or parts[0] not in WORDS:
            near = "" if parts[0] in WORDS else closest(parts[0], WORDS)
            raise ValueError(
                f"{file}: a clip must be right in the folder of one of the "
                f"{len(WORDS)} words{near}. Received: {'/'.join(parts)!r}"
            )
        words.setdefault(parts[0], {})[parts[1]] = file
    vocabulary = sorted(words)
    owner = {}
    for split, name in LISTS.items():
        path = data_dir / name
        lines = list(read_lines(path))
        if not lines:
            # All clips of the split would be trained on.
            raise ValueError(f"{path}: no clips")
        for number, fields in lines:
            word, _, clip = fields[0].partition("/")
            if len(fields) != 1 or clip not in words.get(word, ()):
                near = (
                    closest(clip, words[word])
                    if word in words
                    else closest(word, words)
                )
                raise ValueError(
                    f"{path}, row {number}: no such clip in a folder of words"
                    f"{near}. Received: {' '.join(fields)!r}"
                )
            if (word, clip) in owner:
                raise ValueError(
                    f"{path}, row {number}: {word}/{clip} is listed twice. "
                    f"Received: it is in {owner[word, clip][1]} already"
                )
            owner[word, clip] = split, f"{name}, row {number},"
    found = {"train": [], "val": [], "test": []}
    for word in vocabulary:
        for clip, file in words[word].items():
            split = owner[word, clip][0] if (word, clip) in owner else "train"
            found[split].append((file, word))
    return check_splits(
        data_dir,
        {
            split: Corpus(
                [file for file, _ in clips],
                [[word] for _, word in clips],
                vocabulary,
                sources=[
                    file.stem.partition("_nohash_")[0] for file, _ in clips
                ],
                source_kind="speaker",
            )
            for split, clips in found.items()
        },
    )
