"""Embed texts or images by every layer of an encoder of KerasHub.

    audio-tf embed --encoder bert_base_en --dataset ag_news \\
        --data-dir ag_news_csv --out runs/news
    audio-tf embed --encoder vit_large_patch16_224_imagenet \\
        --dataset cifar100 --data-dir cifar-100-python --out runs/cifar
    audio-tf embed --out runs/news --resume
    audio-tf emotion --embeddings runs/news/embeddings.npz \\
        --protocol splits --focal-gamma 0 --out runs/news_decoder

Every layer's output is averaged over the tokens of a text, or the patches of
an image, as in "Gaussian Adaptive Attention is All You Need" (arXiv
2401.11143), whose tables of AG News and CIFAR-100 are made of such arrays;
KerasHub's own tokenizer or image converter comes before. The paper leaves open
whether special tokens count and how long a text is: here all real tokens
count, padding does not, and --max-tokens cuts.

--out gets embeddings.npz: `embeddings` (clips, layers, dim), `labels` and
`splits`. A part of train is drawn for val; --val-share 0 makes the released
test the validation, as the paper has it. What is embedded is on disk at once,
so that memory does not grow and --resume goes on. Bad examples are left out,
counted and named.
"""

import dataclasses
import functools
import json
import pathlib
import zipfile

import numpy as np
from tqdm.auto import tqdm

from audio_tf import files
from audio_tf.analysis.hub_embeddings import HubEncoder
from audio_tf.corpora import images, layouts, texts
from audio_tf.corpora.examples import counts, with_validation
from audio_tf.corpora.layouts import Layout
from audio_tf.data.feature_cache import check_space
from audio_tf.ops.weights import weights_sha256
from audio_tf.runs import corpus_records, provenance
from audio_tf.runs.flags import run_by_flags
from audio_tf.runs.settings import (
    POSITIVE,
    RATE,
    SEED,
    Settings,
    setting,
    shared,
)
from audio_tf.terminal import describe_failures

EXAMPLES = {
    "ag_news": Layout(texts.read_ag_news, "AG News' train.csv and test.csv"),
    "text_csv": Layout(
        texts.read_text_table, "a file with the header text,label[,split]"
    ),
    "cifar10": Layout(images.read_cifar10, "CIFAR-10's batches for Python"),
    "cifar100": Layout(images.read_cifar100, "CIFAR-100's, its fine classes"),
    "image_folders": Layout(
        images.read_image_folders, "images in a folder per class, or splits"
    ),
}
OF_TEXTS = ["ag_news", "text_csv"]
STORED = ("float32", "float16")
COMPUTED = ("float32", "float16", "bfloat16")
PART = "embeddings.part"
WHOLE = "embeddings.npz"
# Rows that are copied at once.
ROWS = 1_024


@dataclasses.dataclass
class EmbedSettings(Settings):
    """An encoder, and the texts or images that it embeds."""

    layouts = EXAMPLES

    encoder: str | None = setting(
        None,
        "name, hf:// address or folder of a preset of KerasHub",
        unless_given="it is needed",
    )
    dataset: str = setting("ag_news", "layout of the corpus", EXAMPLES)
    data_dir: str | None = shared("data_dir", None, unless_given="it is needed")
    val_share: float = setting(
        0.1,
        "share of train for validation, where there is no such split, drawn "
        "by --seed",
        check=RATE,
    )
    max_tokens: int = setting(
        256,
        "tokens that a text is cut to",
        check=POSITIVE,
        only=("dataset", OF_TEXTS),
    )
    batch_size: int = shared("batch_size", 32)
    dtype: str = setting("float32", "precision of the file", STORED)
    compute_dtype: str | None = setting(
        None,
        "precision of the encoder",
        COMPUTED,
        unless_given="the preset's",
    )
    seed: int = setting(0, "seed of all that is drawn", check=SEED)
    out: str = shared("out", "runs/embed")

    def check(self):
        super().check()
        for name in ("encoder", "data_dir"):
            if not getattr(self, name):
                flag = "--" + name.replace("_", "-")
                raise ValueError(f"{flag} is needed. Received: none")

    def load(self):
        """Reads the examples, and draws val.

        Returns:
            `Examples`.

        Raises:
            ValueError: if val is there, and is to be drawn.
        """
        found = layouts.load(EXAMPLES, self.dataset, self.data_dir, {})
        if "val_share" in self.given and "val" in found.splits:
            raise ValueError(
                "--val-share draws from train where there is no split 'val'. "
                f"Received: --val-share {self.val_share}, "
                f"{found.splits.count('val')} examples in 'val'"
            )
        return with_validation(found, self.val_share, self.seed)


# Settings that may differ when a run goes on.
FREE_SETTINGS = ("data_dir", "batch_size")


def record_of(examples):
    """Lists the files of examples as `corpus_records.make` does."""
    return {
        "vocabulary": sorted(set(examples.labels)),
        "splits": {"all": examples.sources},
        "left_out": None,
    }


def checked(found, rows, names, dtype):
    """Returns embeddings in the precision of the file.

    Args:
        found: float32 `(batch, layers, dim)`.
        rows: list of int, the examples that they are of.
        names: list of str, the names of all examples.
        dtype: str.

    Raises:
        ValueError: if one is not finite, or is not in that precision.
    """
    with np.errstate(over="ignore"):
        stored = found.astype(dtype)
    for row, before, after in zip(rows, found, stored, strict=True):
        if not np.isfinite(after).all():
            level = np.abs(before).max()
            raise ValueError(
                "Embeddings must be finite, and in the range of --dtype. "
                f"Received: {level:g} as {dtype}, of {names[row]}"
            )
    return stored


def embed(examples, encoder, part, shape, settings):
    """Embeds the examples that are not in a file yet, and appends them.

    A bad example's row is NaN.

    Args:
        examples: `Examples`.
        encoder: `HubEncoder`.
        part: `pathlib.Path` of rows without a header.
        shape: pair of ints, layers and dim.
        settings: `EmbedSettings`.
    """
    dtype = np.dtype(settings.dtype)
    size = dtype.itemsize * shape[0] * shape[1]
    part.touch()
    done = part.stat().st_size // size
    missing = (len(examples) - done) * size
    check_space(part.parent, [(missing + len(examples) * size) // 4], 1)
    with open(part, "r+b") as file:
        # A killed run may have left half a row.
        file.truncate(done * size)
        file.seek(done * size)
        bar = tqdm(
            total=len(examples), initial=done, unit=examples.kind, disable=None
        )
        for start in range(done, len(examples), settings.batch_size):
            end = min(start + settings.batch_size, len(examples))
            rows, items = [], []
            for row in range(start, end):
                try:
                    items.append(examples.read(row))
                    rows.append(row)
                except (OSError, ValueError):
                    continue
            block = np.full((end - start, *shape), np.nan, dtype)
            if rows:
                block[np.array(rows) - start] = checked(
                    encoder.embed(items), rows, examples.names, dtype
                )
            file.write(block.tobytes())
            bar.update(end - start)
        bar.close()


def pack(examples, part, shape, dtype, path):
    """Writes the file that `audio-tf emotion` takes, piece by piece.

    Args:
        examples: `Examples`.
        part: `pathlib.Path` that `embed` has filled.
        shape: pair of ints, layers and dim.
        dtype: str.
        path: `pathlib.Path` of the `.npz`.

    Returns:
        Boolean array `(examples,)`, which of them are in it.

    Raises:
        ValueError: if all are bad.
    """
    found = np.memmap(part, dtype, "r", shape=(len(examples), *shape))
    good = ~np.isnan(found[:, 0, 0])
    if not good.any():
        raise ValueError(
            f"No {examples.kind} could be read. Received: {len(examples)}, "
            f"such as {examples.names[0]}"
        )
    header = {
        "descr": np.lib.format.dtype_to_descr(found.dtype),
        "fortran_order": False,
        "shape": (int(good.sum()), *shape),
    }
    with files.whole_file(path) as new, zipfile.ZipFile(new, "w") as archive:
        with archive.open("embeddings.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array_header_1_0(file, header)
            for start in range(0, len(found), ROWS):
                piece = slice(start, start + ROWS)
                file.write(found[piece][good[piece]].tobytes())
        for name in ("labels", "splits"):
            with archive.open(f"{name}.npy", "w") as file:
                values = np.array(getattr(examples, name))[good]
                np.lib.format.write_array(file, values, allow_pickle=False)
    return good


def reasons(examples, good):
    """Returns a dict by name of why examples were left out.

    Args:
        examples: `Examples`.
        good: boolean array `(examples,)`.
    """
    found = {}
    for row in np.flatnonzero(~good):
        try:
            examples.read(row)
            reason = "could not be read when it was embedded"
        except (OSError, ValueError) as error:
            reason = str(error)
        found[examples.names[row]] = reason
    return found


def run(settings, out):
    """Embeds all examples that are not embedded yet.

    A run that has begun in the folder goes on.

    Args:
        settings: `EmbedSettings`.
        out: path of the run's folder.
    """
    out = pathlib.Path(out)
    path, part = out / WHOLE, out / PART
    examples = settings.load()
    record = record_of(examples)
    corpus_records.check(out, record)
    if path.is_file() and not part.is_file():
        print(f"{path} is made already")
        return
    tokens = settings.max_tokens if examples.kind == "text" else None
    encoder = HubEncoder(
        settings.encoder, examples.kind, tokens, settings.compute_dtype
    )
    shape = encoder.shape()
    facts = {
        "class": type(encoder.backbone).__name__,
        "parameters": encoder.backbone.count_params(),
        "weights_sha256": weights_sha256(encoder.backbone.weights),
        "layers": shape[0],
        "dim": shape[1],
    }
    config = out / "config.json"
    if config.is_file():
        before = json.loads(config.read_text())["model"]
        if before != facts:
            raise ValueError(
                f"The encoder is not that of {config}. "
                f"Received: {facts} in place of {before}"
            )
    provenance.begin_run(out, settings, record, model=facts)
    print(f"{counts(examples)}: {shape[0]} layers x {shape[1]}")
    embed(examples, encoder, part, shape, settings)
    good = pack(examples, part, shape, settings.dtype, path)
    part.unlink()
    print(path)
    if not good.all():
        print(describe_failures(reasons(examples, good)))


def kept(out):
    """Returns a text on what a run has embedded, empty if it has nothing.

    Args:
        out: `pathlib.Path`, the folder of the run.
    """
    part = out / PART
    if not part.is_file():
        path = out / WHOLE
        return f"{path} is made already" if path.is_file() else ""
    size = part.stat().st_size / 1e6
    return f"{part} has {size:.1f} MB of embeddings; --resume goes on"


main = functools.partial(
    run_by_flags, run, EmbedSettings, __doc__, free=FREE_SETTINGS, kept=kept
)
