"""Train a Gaussian adaptive transformer on embeddings of a frozen encoder.

    audio-tf emotion --model runs/ssl/preset --dataset emodb \\
        --data-dir EmoDB --module gaam_v1 --out runs/emotion
    audio-tf emotion --embeddings ag_news.npz --protocol splits \\
        --module gqgaam --focal-gamma 0 --batch-size 32 --out runs/news
    audio-tf emotion --out runs/emotion --resume

Clips are cut into chunks, and every layer of --model embeds each of them once:
embeddings are cached, by encoder and audio, and shared by all runs. Then each
speaker or session is left out in turn, as the test; the next one in order is
the validation, by which the rate falls and the best epoch is kept, and the
decoder is trained on the others. --validate-on test is the paper's way, whose
figure is the best epoch's on the very clips that are left out. --protocol
splits trains once, on the splits of the corpus.

--embeddings takes a .npz with `embeddings` (clips, layers, dim), `labels`
(clips,) and either `groups`, which are left out in turn, or `splits` (clips,)
of train, val and test, as `audio-tf embed` writes, for --protocol splits.

--out gets emotion.json and a folder for each fold with decoder.keras; with a
Gaussian module importance.npz, the Importance Factor of each layer and
feature, and pictures of it: the map of each fold's decoder is averaged over
the chunks of its validation, and the folds count alike.
"""

import dataclasses
import functools
import json
import pathlib
import typing

import numpy as np

from audio_tf import files, intervals, released
from audio_tf.audio import RESAMPLER
from audio_tf.corpora import CORPORA
from audio_tf.models import ATTENTION_MODULES, AudioBackbone
from audio_tf.ops.weights import weights_sha256
from audio_tf.runs import (
    corpus_records,
    fold_arrays,
    fold_decoders,
    folds,
    provenance,
    results,
)
from audio_tf.runs.corpus_settings import DataSettings
from audio_tf.runs.flags import run_by_flags
from audio_tf.runs.settings import (
    NOT_NEGATIVE,
    POSITIVE,
    flag,
    setting,
    shared,
)
from audio_tf.terminal import describe_failures

PROTOCOLS = ("leave_one_out", "splits")
# Settings that say how a corpus is read, of no use to arrays.
OF_THE_CORPUS = (
    "model",
    "dataset",
    "data_dir",
    "cache_dir",
    "decoder",
    "strict",
    "chunk_s",
    "other_splits",
)
OF_THE_SPLITS = (
    "val_speakers",
    "test_speakers",
    "train_folds",
    "val_folds",
    "test_folds",
)


@dataclasses.dataclass
class EmotionSettings(DataSettings):
    """Embeddings, decoder and its training.

    The defaults are the paper's of speech emotion recognition.
    """

    dataset: str = setting("emodb", "layout of the corpus", CORPORA)
    model: str | None = shared(
        "model", None, unless_given="needed, or --embeddings"
    )
    embeddings: str | None = setting(
        None, ".npz of embeddings and labels", unless_given="the model's"
    )
    chunk_s: float = setting(
        5.0, "seconds per chunk, 0 for whole clips", check=NOT_NEGATIVE
    )
    protocol: str = setting(
        "leave_one_out",
        "each speaker or session left out in turn, or the corpus' splits",
        PROTOCOLS,
    )
    validate_on: str = setting(
        "next",
        "validation of a fold: the next group in order, or the test, as the "
        "paper has it",
        ["next", "test"],
        only=("protocol", ["leave_one_out"]),
    )
    leave_out: list[str] | None = setting(
        None,
        "groups that are left out, one after the other",
        unless_given="all",
    )
    layers: list[int] | None = setting(
        None,
        "layers that are decoded: hidden states of the model, from 0, the "
        "embedding; of arrays from 1",
        check=NOT_NEGATIVE,
        unless_given="all but 0",
    )
    module: str = setting(
        "gaam_v1", "attention of the decoder", ATTENTION_MODULES
    )
    num_heads: int | None = setting(
        None,
        "heads of the attention",
        check=POSITIVE,
        unless_given="the paper's, or fewer that fit",
    )
    attention_kwargs: dict = setting({}, "further arguments of the attention")
    filters: int = setting(
        512, "channels between the convolutions", check=POSITIVE
    )
    focal_gamma: float = setting(
        2.5,
        "how little what is right counts in the focal loss; 0 is the cross "
        "entropy, the paper's of text and images",
        check=NOT_NEGATIVE,
    )
    epochs: int = shared("epochs", 35)
    batch_size: int = shared("batch_size", 8)
    learning_rate: float = shared("learning_rate", 1e-4)
    weight_decay: float = setting(
        0.1, "of kernels, as AdamW has it", check=NOT_NEGATIVE
    )
    plateau_factor: float = shared("plateau_factor", 0.1)
    plateau_patience: int = shared("plateau_patience", 10)
    presets: bool = setting(
        False, "write each fold's model as a preset, encoder included"
    )
    out: str = shared("out", "runs/emotion")

    def check(self):
        super().check()
        if (self.model is None) == (self.embeddings is None):
            raise ValueError(
                "Either --model or --embeddings is needed. Received: "
                f"model={self.model}, embeddings={self.embeddings}"
            )
        if self.embeddings is not None:
            for name in (*OF_THE_CORPUS, *OF_THE_SPLITS, "presets"):
                if name in self.given:
                    raise ValueError(
                        f"{flag(name)} does not apply to --embeddings. "
                        f"Received: {name}={getattr(self, name)!r}"
                    )
        if self.protocol == "leave_one_out":
            for name in OF_THE_SPLITS:
                if name in self.given:
                    self.check_applies(name, "protocol", ["splits"])
        elif "leave_out" in self.given:
            self.check_applies("leave_out", "protocol", ["leave_one_out"])
        if self.leave_out == []:
            raise ValueError("--leave-out must name a group. Received: none")

    def check_sources(self, corpora):
        # Where groups are left out, nothing depends on the splits.
        if self.protocol == "splits":
            super().check_sources(corpora)

    def departure(self):
        if self.protocol == "splits":
            return super().departure()
        official = CORPORA[self.dataset].protocol
        if official is None or official.leaves_one_out:
            return ""
        return "each group is left out in turn"


# Settings that may differ when a run goes on.
FREE_SETTINGS = ("data_dir", "cache_dir", "embeddings", "leave_out")


def describe(report):
    """Returns a table of the figures, one line for each fold and the mean.

    Args:
        report: dict of `folds`.
    """
    lines = [
        f"{'left out':<12}{'accuracy':>9}{'balanced':>9}{'val':>9}"
        f"{'clips':>7}{'epoch':>7}{'s':>8}"
    ]
    for name, each in report["folds"].items():
        lines.append(
            f"{name:<12}{each['accuracy']:9.4f}"
            f"{each['balanced_accuracy']:9.4f}{each['val_accuracy']:9.4f}"
            f"{each['clips']['test']:>7}{each['best_epoch']:>7}"
            f"{each['seconds']:8.1f}"
        )
    lines.append(
        f"{'mean':<12}{report['accuracy']:9.4f}"
        f"{report['balanced_accuracy']:9.4f}"
    )
    lines += results.format_intervals(report["intervals"], report)
    return "\n".join(lines)


def interval_of(done):
    """Computes the interval of the accuracy of all folds.

    Args:
        done: dict of the reports of folds by name.

    Returns:
        Dict as `results.intervals_of` returns it: over the groups that were
        left out, or over what the clips of a single fold come from.
    """
    first = next(iter(done.values()))
    if len(done) > 1:
        unit, units = "group", len(done)
        interval = intervals.bootstrap_mean(
            [each["accuracy"] for each in done.values()]
        )
    else:
        # Folds of before do not say, and drew clips.
        unit = first.get("unit", "clip")
        units = first.get("units", first["clips"]["test"])
        interval = first["interval"]
    found = {"level": intervals.LEVEL, "unit": unit, "units": units}
    return found if interval is None else {**found, "accuracy": [*interval]}


def summed_up(done):
    """Returns the means over folds, beside the folds.

    Args:
        done: dict of the reports of folds by name.
    """
    means = {
        name: float(np.mean([each[name] for each in done.values()]))
        for name in ("accuracy", "balanced_accuracy")
    }
    return {**means, "intervals": interval_of(done), "folds": done}


def check(embedded, settings):
    """Finds out whether decoders can be trained, before that takes hours.

    Args:
        embedded: `fold_arrays.Embedded`, which may be without a chunk.
        settings: `EmotionSettings`.

    Returns:
        Dict of `folds.Fold` by name.

    Raises:
        TypeError: if the attention takes no such argument.
        ValueError: if there can be no such folds, or no such decoder.
    """
    todo = folds.make(embedded, settings)
    fold_decoders.make_decoder(embedded, settings)
    return todo


class Loaded(typing.NamedTuple):
    """The embeddings that decoders are trained on, and their origin.

    Attributes:
        embedded: `fold_arrays.Embedded`.
        encoder: `AudioBackbone`, or `None` of a file of arrays.
        record: dict, the `corpus_record`.
        model: dict of facts about the encoder, or `None`.
        facts: dict of facts about the corpus, for the report.
        failures: dict of the reason by path of each file that was left out.
    """

    embedded: fold_arrays.Embedded
    encoder: AudioBackbone | None
    record: dict
    model: dict | None
    facts: dict
    failures: dict


def load(settings, out):
    """Loads embeddings: from the file that is given, or by the model.

    Args:
        settings: `EmotionSettings`.
        out: `pathlib.Path`, the folder of the run.

    Returns:
        `Loaded`.
    """
    if settings.embeddings is None:
        embedded, encoder, record, shared, failures = folds.embed_corpus(
            settings, out, functools.partial(check, settings=settings)
        )
        model = {
            **provenance.model_facts(encoder),
            "weights_sha256": weights_sha256(encoder.weights),
        }
        # As it comes out of the report of a run that goes on.
        model = json.loads(json.dumps(model))
        facts = results.facts(settings, record, shared)
        return Loaded(embedded, encoder, record, model, facts, failures)
    path = pathlib.Path(settings.embeddings)
    embedded = fold_arrays.read_arrays(path)
    layers = folds.check_layers(settings.layers, embedded.layers)
    if layers != embedded.layers:
        places = [embedded.layers.index(number) for number in layers]
        embedded = dataclasses.replace(
            embedded, x=embedded.x[:, places], layers=layers
        )
    record = fold_arrays.arrays_record(path, embedded)
    corpus_records.check(out, record)
    facts = {"corpus": corpus_records.summary(record)}
    return Loaded(embedded, None, record, None, facts, {})


def run(settings, out):
    """Trains and tests a decoder on all folds that are not done.

    A run that has begun in the folder goes on.

    Args:
        settings: `EmotionSettings`.
        out: path of the run's folder.
    """
    out = pathlib.Path(out)
    path = out / "emotion.json"
    loaded = load(settings, out)
    # At the end of the run its files may be those of another.
    mark = settings.model and released.weights_mark(settings.model)
    embedded = loaded.embedded
    done = provenance.parts_done(path, "folds", loaded.model)
    todo = check(embedded, settings)
    if folds.WHOLE in todo and todo[folds.WHOLE].tested == "val":
        print("no clips in test: the figure is the best epoch's on val")
    print(
        f"{len(embedded.targets)} clips, {len(embedded.x)} chunks of "
        f"{embedded.x.shape[1]} layers x {embedded.x.shape[2]}, "
        f"{len(todo)} folds"
    )
    provenance.begin_run(out, settings, loaded.record, model=loaded.model)
    origin = {
        **provenance.run_facts(settings, out),
        "model": loaded.model,
        **loaded.facts,
        "scored": {
            "accuracy": "clips, the mean over the scores of a clip's chunks",
            "val_accuracy": "chunks",
        },
        "resampler": RESAMPLER,
        "labels": embedded.vocabulary,
        "layers": embedded.layers,
        "files_left_out": len(loaded.failures),
        "wanted": list(todo),
    }
    for name, fold in todo.items():
        folder = fold_decoders.fold_folder(out, name)
        if name not in done:
            done[name] = fold_decoders.train_fold(
                name, fold, embedded, settings, folder
            )
            files.write_json(path, {**summed_up(done), **origin})
        if settings.presets and not (folder / "preset").is_dir():
            fold_decoders.write_preset(
                name, fold, embedded, settings, loaded.encoder, folder, origin
            )
    with_map = [
        fold_decoders.fold_folder(out, name).name
        for name in done
        if (fold_decoders.fold_folder(out, name) / "map.npy").is_file()
    ]
    if with_map:
        title = f"{settings.module}, {len(with_map)} folds"
        fold_decoders.write_importance(out, with_map, embedded, title, mark)
    print(describe(summed_up(done)))
    if loaded.failures:
        print(describe_failures(loaded.failures))


def kept(out):
    """Returns a text on the folds that an unfinished run has done.

    Args:
        out: `pathlib.Path`, the folder of the run.
    """
    return provenance.parts_kept(out / "emotion.json", "folds")


main = functools.partial(
    run_by_flags, run, EmotionSettings, __doc__, free=FREE_SETTINGS, kept=kept
)
