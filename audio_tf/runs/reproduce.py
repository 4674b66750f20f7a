"""Rebuild the tables of the papers on a corpus of your own.

    audio-tf reproduce ssl \\
        --pretrain-config training/configs/librispeech_ssl.py \\
        --probe-config training/configs/librispeech_probe.py \\
        --alignment converted_aligned_phones.txt \\
        --train-list train_split.txt --test-list test_split.txt \\
        --data-dir LibriSpeech --out runs/table2
    audio-tf reproduce emotion --model runs/ssl/preset --data-dir EmoDB \\
        --out runs/emotion_table
    audio-tf reproduce layers --model runs/ssl/preset --data-dir EmoDB \\
        --importance runs/emotion_table/gaam_v1/seed_*/importance.npz \\
        --out runs/layers_table

`ssl` is Table 2 of "Input-independent Attention Weights Are Expressive
Enough" (arXiv 2006.05174): an Audio ALBERT is pre-trained with each attention,
frozen, and probed for speakers and phones. Each row is two commands, which are
printed. Rows that are finished are kept: the same command goes on where it
stopped. --out gets table2.md, table2.json and a folder for each row. The table
says of each row whether its attention was causal; `"causal"` in the config of
the pre-training holds that equal where the attentions can be.

Beside the table's rows there are the paper's method of 2020, which begins with
the patterns of Raganato et al. (`raganato_synthesizer`; its paper prints the
same accuracies), and without published figures local attention alone, and local
and full attention layer by layer in turn (`hybrid_local`), where each of the
two has one layer that is applied again. A row that was not measured says
"not run".

`fsd50k` is Table 1 of "Audio Transformers" (arXiv 2105.00335): four
convolutional rivals and four Audio Transformers, each trained with --seeds, on
FSD50K or any corpus of `audio-tf train`. Where TensorFlow finds several GPUs,
each has a row of its own. --train-settings and --row-settings change settings
of `audio-tf train` for all rows or for one, such as the learning rate, the one
thing that the paper tunes: '{"large": {"learning_rate": 3e-4}}'. --out gets
table1.md, table1.csv and table1.json, with the published mAP and parameters
beside the measured ones, and says by pairs of runs of one seed what depth,
pooling and multi-scale averages change.

`emotion` is Table 2 of "Gaussian Adaptive Attention is All You Need" (arXiv
2401.11143): a decoder with each attention module over the same embeddings of a
frozen encoder, each speaker or session left out, beside `audio-tf baseline`.
--emotion-config has what else `audio-tf emotion` is told, and --embeddings
with --paper cifar100 or ag_news makes it Table 3 or 4, for which the config has
`"protocol": "splits"` and `"focal_gamma": 0.0`. `layers` is Table 6, or 7:
decoders of the layers of highest and of lowest Importance Factor. Both write
table.md and table.json, and go on where they stopped.
"""

import json
import sys

from audio_tf import console
from audio_tf.ops.checks import closest
from audio_tf.runs import emotion_tables, rows, sound_table, ssl_table
from audio_tf.runs.flags import run_by_flags
from audio_tf.runs.sound_rows import SoundTableSettings

TABLES = {
    "ssl": (ssl_table.SslSettings, ssl_table.reproduce_ssl),
    "fsd50k": (
        SoundTableSettings,
        sound_table.reproduce_sounds,
    ),
    "emotion": (
        emotion_tables.EmotionTableSettings,
        emotion_tables.reproduce_emotion,
    ),
    "layers": (
        emotion_tables.LayersTableSettings,
        emotion_tables.reproduce_layers,
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
    table, *flags = (sys.argv[1:] if argv is None else argv) or [""]
    if table in MEASURES:
        file, asked = flags
        MEASURES[table](file, json.loads(asked))
        return
    if table in ("-h", "--help"):
        print(__doc__)
        return
    if table not in TABLES:
        console.Parser(prog=prog).error(
            f"the table must be one of {list(TABLES)}{closest(table, TABLES)}. "
            f"Received: {table!r}"
        )
    settings_class, reproduce = TABLES[table]
    run_by_flags(rows.alone(reproduce), settings_class, __doc__, flags, prog)
