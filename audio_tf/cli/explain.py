"""Show what a label rests on: the times and frequencies that speak for it.

Each file is cut into patches of time and frequency, and each patch has a
weight: how much it raises the label's score. Those with the largest weights
are printed; --json prints all of them, and --pictures draws them. Files that
cannot be used are left out and named at the end; the exit status is 1 then.
"""

import json
import os
import pathlib

from audio_tf import files, quiet
from audio_tf.cli import flags, sources
from audio_tf.cli.output import report
from audio_tf.terminal import printable

SHOWN = 5
# Bytes of the name of a picture, of 255 that most disks take: a number may
# follow, and the name under which it is written first is longer.
LONGEST_STEM = 230
METHODS = ("integrated_gradients", "occlusion", "shapley")


def add(parser):
    """Adds the flags of the command."""
    flags.add_files(
        parser, f", or {sources.STDIN}, one file's content on standard input"
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="PRESET",
        help="name of a released preset, folder of a preset, or its hf://, "
        "kaggle:// or gs:// address",
    )
    parser.add_argument(
        "--label",
        metavar="LABEL",
        help="label that is explained (default: each file's best)",
    )
    parser.add_argument(
        "--method",
        type=flags.one_of(METHODS),
        default=METHODS[0],
        metavar="METHOD",
        help=f"{', '.join(METHODS)}; the last is slow, and the one to trust "
        "most (default: %(default)s)",
    )
    parser.add_argument(
        "--patch-s",
        type=flags.positive_float,
        default=0.1,
        metavar="SECONDS",
        help="length of a patch, about (default: %(default)s)",
    )
    parser.add_argument(
        "--bands",
        type=flags.positive_int,
        default=16,
        metavar="N",
        help="bands of frequency, of equal width in mel (default: %(default)s)",
    )
    parser.add_argument(
        "--pictures",
        metavar="DIR",
        help="folder that a PNG of each file goes to",
    )
    parser.add_argument(
        "--show",
        type=flags.positive_int,
        metavar="N",
        help="patches that are printed of each file, without --json (default: "
        f"{SHOWN})",
    )
    flags.add_json(parser)
    flags.add_strict(parser)


def run(arguments):
    """Explains the files and returns the exit status."""
    flags.need(
        "--show", arguments.show, "text, without --json", not arguments.json
    )
    if arguments.pictures is not None:
        files.check_folder("--pictures", arguments.pictures)
    named = sources.find_sources(arguments.files)
    with quiet.tensorflow():
        # They load TensorFlow, here where it is quiet.
        import audio_tf.models  # noqa: F401
        from audio_tf.export import classifiers
    classifier = classifiers.load_trained(arguments.model)
    draw = None
    if arguments.pictures is not None:
        draw = Pictures(arguments.pictures, classifier.sample_rate_hz)
    failures = {}
    for source, found in classifier.explain_sources(
        named,
        arguments.label,
        arguments.method,
        arguments.patch_s,
        arguments.bands,
        arguments.strict,
    ):
        if "error" in found:
            failures[found["file"]] = found["error"]
            continue
        if draw is not None:
            found["picture"] = draw(source, found)
        print_patches(found, arguments.show or SHOWN, arguments.json)
    return report(failures)


def print_patches(found, count, as_json):
    """Prints the patches of a file with the largest weights.

    Args:
        found: dict as `AudioClassifier.explain` returns it.
        count: int, how many patches.
        as_json: bool, whether to print all of them, as a line of JSON.
    """
    import numpy as np

    if as_json:
        plain = {
            key: value.tolist() if isinstance(value, np.ndarray) else value
            for key, value in found.items()
        }
        print(json.dumps(plain, allow_nan=False), flush=True)
        return
    weights, time_s = found["weights"], found["time_s"]
    hz = found["frequency_hz"]
    print(
        f"{printable(found['file'])}: {printable(found['label'])} "
        f"{found['score']:.3f}, silence {found['silence_score']:.3f}"
    )
    for index in np.argsort(-np.abs(weights).ravel(), kind="stable")[:count]:
        time, band = np.unravel_index(index, weights.shape)
        print(
            f"  {weights[time, band]:+.3f}  "
            f"{time_s[time]:6.2f} to {time_s[time + 1]:.2f} s  "
            f"{hz[band]:6.0f} to {hz[band + 1]:.0f} Hz"
        )
    if "picture" in found:
        print(f"  {printable(found['picture'])}", flush=True)


class Pictures:
    """A folder of pictures, one for each file.

    Args:
        folder: path; made if missing.
        sample_rate_hz: int, the model's rate.

    Raises:
        ImportError: if matplotlib is not installed.
    """

    def __init__(self, folder, sample_rate_hz):
        from audio_tf.analysis import figures

        figures.new_figure(1.0, 1.0)
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sample_rate_hz, self.names = sample_rate_hz, set()

    def __call__(self, source, found):
        """Draws one file and returns the path of its picture, a str.

        Args:
            source: `audio.sources.Source`.
            found: dict as `AudioClassifier.explain` returns it.
        """
        from audio_tf.analysis import draw_explanation, figures

        stem = name = stem_of(source.name)
        number = 1
        # Files of several folders may have one name, and some disks tell no
        # letters of two cases apart.
        while name.casefold() in self.names:
            number += 1
            name = f"{stem}_{number}"
        self.names.add(name.casefold())
        path = self.folder / f"{name}.png"
        rate_hz = self.sample_rate_hz
        drawn = draw_explanation(found, source.load(rate_hz), rate_hz)
        figures.save(drawn, path)
        return str(path)


def stem_of(name):
    """Returns what the name of a source's picture begins with.

    Args:
        name: path of the source, or what stands for one.
    """
    stem = pathlib.Path(str(name)).stem.strip("-") or "clip"
    encoded = os.fsencode(stem)
    if len(encoded) <= LONGEST_STEM:
        return stem
    # A character that is cut goes.
    return encoded[:LONGEST_STEM].decode(errors="ignore")
