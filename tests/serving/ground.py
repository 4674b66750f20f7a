"""What all loads on the stand-in share: two versions, clips, their scores."""

import argparse
import contextlib
import io
import json
import pathlib
import shutil
import tempfile

import numpy as np
import soundfile

from audio_tf.client import load
from serving import fleet, process, served, sounds

# What a user waits for at most: attempts in between are not waited for longer.
TIMEOUT_S = 10.0


def add_flags(parser, seconds, rate_per_s, meaning="how long it takes"):
    """Adds the flags that all loads have."""
    parser.add_argument(
        "--seconds",
        type=float,
        default=seconds,
        help=f"{meaning}; few show that it works, more measure "
        "(default: %(default)g)",
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=rate_per_s,
        help="good requests a second (default: %(default)s)",
    )
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument(
        "--batching", action=argparse.BooleanOptionalAction, default=True
    )
    parser.add_argument("--preset", default="audio_transformer_small")
    parser.add_argument(
        "--model",
        help="folder of an export with versions 1 and 2 (default: the "
        "preset's architecture with random weights, exported twice)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clips", type=int, default=40)
    parser.add_argument("--python", default=process.PYTHON)
    parser.add_argument(
        "--out", default="runs/fire", help="folder (default: %(default)s)"
    )


def second_of_sound(rng):
    """Content of a WAV file of one second, 16 kHz and 16 bits."""
    file = io.BytesIO()
    audio = rng.uniform(-0.5, 0.5, 16_000)
    soundfile.write(file, audio, 16_000, "PCM_16", format="WAV")
    return file.getvalue()


class Ground:
    """Two exports of other weights, and clips with what each scores of them.

    Args:
        arguments: of the command line.
        top: folder for what is written.
        clip: function of a `numpy.random.Generator` that makes a clip.

    Attributes:
        rng: `numpy.random.Generator`.
        clips: list of bytes.
        known: list by clip of the scores of version 1 and those of version 2.
    """

    def __init__(self, arguments, top, clip=sounds.good):
        self.arguments = arguments
        self.top = pathlib.Path(top)
        self.rng = np.random.default_rng(arguments.seed)
        self.clips = [clip(self.rng) for _ in range(arguments.clips)]
        if arguments.model:
            folder = pathlib.Path(arguments.model)
            self.versions = [folder / "1", folder / "2"]
        else:
            self.versions = [self.export(number) for number in (1, 2)]
        models = [served.Served(folder) for folder in self.versions]
        self.known = [
            [self.score(model, clip) for model in models] for clip in self.clips
        ]

    def export(self, number):
        """Exports a version of random weights; returns its folder."""
        import keras

        from audio_tf import export

        keras.utils.set_random_seed(number)
        return export.export(self.classifier(), self.top / "versions")

    def classifier(self):
        """A classifier of the preset's architecture."""
        from audio_tf import models

        return models.AudioClassifier.from_preset(
            self.arguments.preset,
            labels=[f"class {number}" for number in range(50)],
            chunk_s=1.0,
        )

    @staticmethod
    def score(model, clip):
        outputs = model.run(served.SIGNATURE, {"audio_bytes": [clip]})
        if not outputs["valid"][0]:
            raise SystemExit(f"a good clip is refused: {outputs['error'][0]}")
        return outputs["scores"][0]

    def model(self, name, number):
        """A model's folder with one version in it."""
        folder = self.top / name / "audio_tf"
        folder.mkdir(parents=True)
        self.publish(folder, number)
        return folder

    def publish(self, folder, number):
        """Puts a version into a model's folder, whole."""
        partial = folder / f".{number}"
        shutil.copytree(self.versions[number - 1], partial)
        partial.rename(folder / str(number))

    def fleet(self, folder, name="fleet", **kwargs):
        """A `Fleet` as the command line asks for it."""
        kwargs = {
            "copies": self.arguments.copies,
            "batching": self.arguments.batching,
            "python": self.arguments.python,
            **kwargs,
        }
        return fleet.Fleet(folder, self.top / name, **kwargs)

    def sender(self, url, **kwargs):
        """A `Sender` of the clips, that does not try again."""
        kwargs = {"retries": 0, "timeout_s": TIMEOUT_S, **kwargs}
        return load.Sender(url, self.clips, self.known, **kwargs)


@contextlib.contextmanager
def made(arguments, **kwargs):
    """The `Ground` in a folder that is there as long as the block runs."""
    if not fleet.has_nginx():
        raise SystemExit("no nginx: apt-get install nginx-light")
    if not process.has_kserve(arguments.python):
        raise SystemExit(
            f"{arguments.python} has no kserve: `make test-serving` makes "
            ".venv-serving, which has it; KSERVE_PYTHON or --python names it"
        )
    with tempfile.TemporaryDirectory(prefix="fire_") as top:
        yield Ground(arguments, top, **kwargs)


def write_rows(arguments, name, rows):
    """Writes rows as JSON lines into the folder of `--out`."""
    path = pathlib.Path(arguments.out, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"written: {path}")


def told(title, found):
    """One line of `Figures`."""
    return (
        f"{title:34s} {found.offered_per_s:7.1f}/s  good "
        f"{found.good_per_s:7.1f}/s  p50 {1e3 * found.p50_s:8.1f}  p99 "
        f"{1e3 * found.p99_s:8.1f}  p99 of good {1e3 * found.good_p99_s:8.1f}  "
        f"unsent p99 {1e3 * found.unsent_p99_s:8.1f} ms  refused "
        f"{found.refused}  failed {found.failed}  wrong {found.wrong}"
    )


def verdict(violations, errors=()):
    """Prints what went wrong; returns the exit status."""
    for text, count in errors:
        print(f"  {count:6d} times: {text[:300]}")
    print(f"violations: {len(violations)}")
    for text in violations[:20]:
        print(f"  {text}")
    return 1 if violations else 0
