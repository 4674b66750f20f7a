"""Rebuild the tables of the papers on a corpus of your own.

    audio-tf reproduce fsd50k --data-dir FSD50K --out runs/table1
    audio-tf reproduce ssl \\
        --pretrain-config training/configs/librispeech_ssl.py \\
        --probe-config training/configs/librispeech_probe.py \\
        --data-dir LibriSpeech --out runs/table2
    audio-tf reproduce emotion --model runs/ssl/preset --data-dir EmoDB \\
        --out runs/emotion_table
    audio-tf reproduce layers --model runs/ssl/preset --data-dir EmoDB \\
        --importance runs/emotion_table/gaam_v1/seed_*/importance.npz \\
        --out runs/layers_table

Each writes its table with the published figures beside the measured ones, and
goes on where it stopped.
"""

import json
import os
import sys
import typing

from audio_tf import console
from audio_tf.runs import (
    emotion_table,
    layers_table,
    rows,
    sound_table,
    ssl_table,
)
from audio_tf.runs.flags import run_by_flags
from audio_tf.runs.sound_rows import SoundTableSettings


class Table(typing.NamedTuple):
    """A table that this program rebuilds.

    Attributes:
        settings: the class of its settings.
        reproduce: function of the settings, which runs its rows.
        help: str, the text of its help, whose first line says what it is.
    """

    settings: type
    reproduce: typing.Callable
    help: str


TABLES = {
    "fsd50k": Table(
        SoundTableSettings, sound_table.reproduce_sounds, sound_table.__doc__
    ),
    "ssl": Table(
        ssl_table.SslSettings, ssl_table.reproduce_ssl, ssl_table.__doc__
    ),
    "emotion": Table(
        emotion_table.EmotionTableSettings,
        emotion_table.reproduce_emotion,
        emotion_table.__doc__,
    ),
    "layers": Table(
        layers_table.LayersTableSettings,
        layers_table.reproduce_layers,
        layers_table.__doc__,
    ),
}


# What rows let a process of its own measure.
MEASURES = {
    "time": ssl_table.time_inference,
    "parameters": sound_table.count_parameters,
}


def main(argv=None, prog=None):
    """Rebuilds the table that the first argument names.

    Args:
        argv: list of str, the table and its flags; those of the process if
            `None`.
        prog: str, the program's name in usage and errors; the script's if
            `None`.
    """
    prog = prog or os.path.basename(sys.argv[0])
    argv = sys.argv[1:] if argv is None else argv
    if len(argv) == 3 and argv[0] in MEASURES:
        measure, file, asked = argv
        MEASURES[measure](file, json.loads(asked))
        return
    tables = {name: each.help.splitlines()[0] for name, each in TABLES.items()}
    table, flags = console.choose(argv, tables, "table", prog, __doc__)
    settings_class, reproduce, text = TABLES[table]
    run_by_flags(
        rows.alone(reproduce), settings_class, text, flags, f"{prog} {table}"
    )
