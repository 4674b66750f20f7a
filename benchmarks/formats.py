"""A trained model in every format: size, parity, latency, accuracy.

    python benchmarks/formats.py --model runs/esc10/preset --dataset esc10 \\
        --data-dir ESC-50-master --test-folds 4 --out formats.md

The accuracy is that of the test split before and after quantization; parity
is over its first clips, latency that of the first at batch 1. `--out` gets
the table appended.
"""

import argparse
import os
import pathlib
import platform
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # noqa: E402

from audio_tf import models  # noqa: E402
from audio_tf.export import command, formats, verify  # noqa: E402

PARITY_CLIPS = 20


def main(argv=None):
    arguments = parse(argv)
    model = models.AudioClassifier.from_preset(arguments.model)
    chunks = command.labelled_chunks(model, arguments)
    waveforms = [chunks.read(row) for row in range(PARITY_CLIPS)]
    with tempfile.TemporaryDirectory() as folder:
        files = written(model, pathlib.Path(folder))
        rows = verify.verify(
            model, files, waveforms, chunks, arguments.rounds, arguments.calls
        )
    text = "\n".join(
        [
            f"    python benchmarks/formats.py {' '.join(sys.argv[1:])}",
            "",
            f"{len(chunks.clips)} clips, {len(chunks)} chunks; latency of "
            f"{len(waveforms[0])} samples, {arguments.rounds} paired rounds "
            f"of {arguments.calls} calls; {os.cpu_count()} cores, Python "
            f"{platform.python_version()}, TensorFlow {tf.__version__}",
            "",
            verify.format_rows(rows),
            "",
        ]
    )
    print(text)
    if arguments.out is not None:
        with open(arguments.out, "a") as file:
            file.write(text)
    return 0 if all(row.passed for row in rows) else 1


def parse(argv):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", required=True, help="folder of a preset")
    parser.add_argument("--dataset", default="esc10", help="layout of clips")
    parser.add_argument("--data-dir", help="folder of the corpus")
    parser.add_argument("--test-folds", nargs="+", type=int, help="of ESC")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--out", help="file that the table is appended to")
    return parser.parse_args(argv)


def written(model, folder):
    """Writes every format, quantized where it can be; returns paths by name."""
    files = {}
    for name, format in formats.FORMATS.items():
        for quantize in (None, *formats.QUANTIZATIONS):
            if quantize in format.unquantizable:
                continue
            key = name if quantize is None else f"{name} {quantize}"
            target = folder / key.replace(" ", "_")
            files[key] = formats.convert(model, target, name, quantize)
    return files


if __name__ == "__main__":
    sys.exit(main())
