"""The command line: `audio-tf classify | query | export | ...`.

Each command is a module, which is imported when its command is asked for: a
help text waits for nothing that the command itself needs.
"""

import argparse
import importlib
import os
import sys

from audio_tf import configs, console, lifeline, quiet
from audio_tf.version import __version__

# Modules of this package, by name, and what they do in one line. To add one,
# write a module whose docstring is its help, with `add(parser)`, which gives
# the parser its flags, and `run(arguments)`, which returns the exit status.
COMMANDS = {
    "classify": "print the top labels of audio files",
    "explain": "show the times and frequencies that a label rests on",
    "score": "score archives of any size into Parquet files, on Apache Beam",
    "app": "serve a web page to try models in",
    "query": "classify by a server, TensorFlow Serving's REST or gRPC",
    "export": "write a SavedModel or a file for another runtime",
    "inspect": "draw and sort the attention maps of a checkpoint",
    "gather": "link the training clips of several corpora into one folder",
    "presets": "list released presets, and the sizes of models",
    "build": "write a corpus as files that TensorFlow Datasets reads",
    "cache": "list, clear or limit decoded audio, features and embeddings",
    "attentions": "list the attentions and what they cost",
}

# Modules of `audio_tf.runs`, each with `main(argv, prog)` and flags that are
# made from its settings.
RUNS = {
    "train": "train an audio classifier from files",
    "prepare": "fill the cache ahead of a training, by many cores or machines",
    "evaluate": "evaluate a model on a split of a corpus",
    "pretrain": "pre-train on unlabelled speech",
    "probe": "probe frozen features for speakers and phones",
    "embed": "embed texts or images by all layers of a frozen encoder",
    "emotion": "decode all layers of a frozen encoder, one speaker left out",
    "baseline": "score what scikit-learn reaches on the same clips",
    "release": "write a trained model as a released preset, with its card",
    "reproduce": "rebuild a table of the papers on your corpus",
    "compare": "train the same model with each attention, on your corpus",
}

PROG = "audio-tf"


@console.terminable()
@console.warnings_in_one_line()
def main(argv=None):
    """Runs the command line.

    Args:
        argv: list of str, the arguments; those of the process if `None`.

    Returns:
        The exit status: 0, 1 if something was left out or differs, 2 if
        nothing could be done, 130 after Ctrl-C, 143 after SIGTERM. Trainings
        and results count the bad files that they leave out, and end with 0.

    Raises:
        SystemExit: after a help text, or one line on a wrong flag.
    """
    lifeline.hold()
    console.open_streams()
    console.show_any_name()
    quiet.hide_retracing()
    argv = sys.argv[1:] if argv is None else list(map(str, argv))
    if argv[:1] == ["--debug"]:
        argv = [*argv[1:], "--debug"]
    name = argv[0] if argv else None
    flags = ()
    try:
        if configs.VARIABLE in os.environ:
            with quiet.tensorflow():
                configs.execute_again()
        if name in RUNS:
            run = importlib.import_module(f"audio_tf.runs.{name}")
            run.main(argv[1:], prog=f"{PROG} {name}")
            status = 0
        elif name in COMMANDS:
            command = importlib.import_module(f"{__name__}.{name}")
            parser = console.Parser(
                prog=f"{PROG} {name}",
                description=command.__doc__,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            command.add(parser)
            arguments = parser.parse_args(argv[1:])
            # Of a positional argument there is no flag to name.
            flags = [
                each
                for each in vars(arguments)
                if "--" + each.replace("_", "-") in parser.flags
            ]
            status = command.run(arguments)
        else:
            console.choose(
                argv,
                {**COMMANDS, **RUNS},
                "command",
                PROG,
                "Audio classification from the shell.",
                f"audio_tf {__version__}",
            )
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        console.drop_output()
        return console.READER_GONE
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in argv:
            raise
        return console.print_error(f"{PROG} {name}", error, flags=flags)[1]
