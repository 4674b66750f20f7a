"""Pictures of the site, drawn by the library's own commands when it is built.

    python docs/pictures.py FOLDER

writes all of `PICTURES` into a folder, in about a minute on 2 cores. All they
show is of sounds that code has made and of released models, so none of it lies
in git. A page shows one where it says `<!-- picture: NAME CAPTION -->`.
"""

import contextlib
import io
import os
import pathlib
import shlex
import shutil
import sys
import tempfile
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# The commands run in a folder with `made/`, the page's samples of sounds, and
# `sounds/`, a folder per class.
CLASSES = ("bell", "crickets", "knock", "siren")
CLIPS, CLIP_S, RATE_HZ = 40, 0.5, 16_000


class Picture(NamedTuple):
    """A picture of a page.

    Attributes:
        command: str, what draws it, as a user would type it.
        file: str, the path of what it draws.
    """

    command: str
    file: str


PICTURES = {
    "curves": Picture(
        "audio-tf train --dataset folders --data-dir sounds --out runs/sounds"
        " --model audio_transformer_mel_small --augmentation none"
        " --average-share 0 --learning-rate 3e-3 --batch-size 16"
        " --epochs 10 --monitor val_loss",
        "runs/sounds/learning_curves.png",
    ),
    "classes": Picture(
        "audio-tf evaluate --dataset synthetic --data-dir synthetic"
        " --model audio_transformer_synthetic_events --pictures results",
        "results/classes.png",
    ),
    "why": Picture(
        "audio-tf explain made/knocks_then_a_siren.wav --label siren"
        " --model audio_transformer_synthetic_events --pictures why",
        "why/knocks_then_a_siren.png",
    ),
    "patterns": Picture(
        "audio-tf inspect maps made --only maps"
        " --model audio_transformer_synthetic_events",
        "maps/patterns.png",
    ),
    "kinds": Picture(
        "audio-tf inspect kinds made --only maps --model audio_albert_speech",
        "kinds/kinds.png",
    ),
    "compression": Picture(
        "audio-tf inspect frontend --only frontend"
        " --model audio_transformer_synthetic_events",
        "frontend/compression.png",
    ),
}


def write_sounds(folder):
    """Writes what the commands read, the same sounds each time.

    Args:
        folder: `pathlib.Path`.
    """
    import numpy as np
    import soundfile

    from audio_tf.app import samples
    from audio_tf.corpora import sound_events

    (folder / "made").mkdir()
    for name, sample in samples.FILES.items():
        (folder / "made" / name).write_bytes(samples.content(sample))
    rng = np.random.default_rng(0)
    size = int(CLIP_S * RATE_HZ)
    for label in CLASSES:
        (folder / "sounds" / label).mkdir(parents=True)
        for number in range(CLIPS):
            sound = sound_events.EVENTS[label](rng, size, RATE_HZ)
            noise = 0.1 * rng.standard_normal(size)
            file = folder / "sounds" / label / f"{number:02d}.wav"
            soundfile.write(file, 0.3 * sound + noise, RATE_HZ)


def draw(out, names=tuple(PICTURES)):
    """Runs the commands in a folder of their own, and keeps the pictures.

    Args:
        out: path of the folder that gets `NAME.png` of each.
        names: names of the pictures.

    Raises:
        RuntimeError: if a command fails; it has what the command printed.
    """
    from audio_tf import cli

    out = pathlib.Path(out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        cache_in(folder),
    ):
        write_sounds(pathlib.Path(folder))
        for name in names:
            command, file = PICTURES[name]
            printed = io.StringIO()
            with (
                contextlib.redirect_stdout(printed),
                contextlib.redirect_stderr(printed),
            ):
                try:
                    status = cli.main(shlex.split(command)[1:])
                except SystemExit as stopped:
                    status = stopped.code
            if status:
                raise RuntimeError(f"{command}\n{printed.getvalue()}")
            shutil.copy(file, out / f"{name}.png")


@contextlib.contextmanager
def cache_in(folder):
    """A context in which the commands' cache of audio is within a folder."""
    before = os.environ.get("AUDIO_TF_CACHE")
    os.environ["AUDIO_TF_CACHE"] = os.path.join(folder, "cache")
    try:
        yield
    finally:
        del os.environ["AUDIO_TF_CACHE"]
        if before is not None:
            os.environ["AUDIO_TF_CACHE"] = before


if __name__ == "__main__":
    draw(sys.argv[1])
