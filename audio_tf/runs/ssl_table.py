"""Table 2 of "Input-independent Attention Weights Are Expressive Enough".

    audio-tf reproduce ssl \\
        --pretrain-config training/configs/librispeech_ssl.py \\
        --probe-config training/configs/librispeech_probe.py \\
        --alignment converted_aligned_phones.txt \\
        --train-list train_split.txt --test-list test_split.txt \\
        --data-dir LibriSpeech --out runs/table2

arXiv 2006.05174: an Audio ALBERT is pre-trained with each attention, frozen,
and probed for speakers and phones. Each row is two commands, which are printed.
The table says of each row whether its attention was causal; `"causal"` in the
config of the pre-training holds that equal where the attentions can be.

Beside the table's rows there are the paper's method of 2020, which begins with
the patterns of Raganato et al. (`raganato_synthesizer`; its paper prints the
same accuracies), and without published figures local attention alone, and local
and full attention layer by layer in turn (`hybrid_local`), where each of the
two has one layer that is applied again. A row that was not measured says
"not run", and each other one of how many seeds it is the mean.

--out gets table2.md, table2.json and a folder for each row. Rows that are
finished are kept, with all of their seeds: the same command goes on where it
stopped.
"""

import dataclasses
import functools
import json
import pathlib

from audio_tf import files
from audio_tf.corpora import SPEECH
from audio_tf.runs import processes, rows
from audio_tf.runs.flags import check_folder, read_config
from audio_tf.runs.settings import (
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    Settings,
    flag,
    setting,
    shared,
)
from audio_tf.runs.ssl_rows import (
    BASELINE,
    TABLE_2,
    TASKS,
    format_table,
    row_facts,
)

# Settings that are handed on to `audio-tf probe`.
PROBE_FLAGS = ("alignment", "train_list", "val_list", "test_list")
# Settings that the other rows take from their model, and mel has to be given.
FEATURE_SETTINGS = ("features", "features_options", "sample_rate_hz")
# Settings of the configs that the rows say.
OWN = {
    "pretrain_config": ("attention", "seed", "out"),
    "probe_config": ("model", "layer", "tasks", "seed", "out"),
}


def timed_sizes():
    """Returns a list of the sizes of Audio ALBERT, whose inference is timed."""
    from audio_tf import models

    return [
        name
        for name, backbone in models.list_sizes().items()
        if issubclass(backbone, models.AudioAlbertBackbone)
    ]


@dataclasses.dataclass
class SslSettings(Settings):
    """Rows, seeds and sources of a table of pre-trained models."""

    layouts = SPEECH

    pretrain_config: str | None = setting(
        None, "settings of audio-tf pretrain", unless_given="needed"
    )
    probe_config: str | None = setting(
        None, "settings of audio-tf probe", unless_given="needed"
    )
    data_dir: str | None = shared("data_dir", None, unless_given="needed")
    cache_dir: str | None = shared(
        "cache_dir", None, unless_given="the configs'"
    )
    alignment: str | None = shared("alignment", None)
    train_list: str | None = shared("train_list", None)
    val_list: str | None = shared("val_list", None)
    test_list: str | None = shared("test_list", None)
    rows: list[str] = setting(list(TABLE_2), "rows of the table", TABLE_2)
    seeds: list[int] = setting([0], "seeds whose mean counts", check=SEED)
    time_model: str = setting(
        "audio_albert_6", "size whose inference is timed", timed_sizes
    )
    time_frames: int = setting(
        500, "frames of the clip that is timed, as in Table 1", check=POSITIVE
    )
    repeats: int = setting(
        7, "timed turns of each model, 0 for none", check=NOT_NEGATIVE
    )
    out: str = shared("out", "runs/table2")

    def check(self):
        super().check()
        for name in ("pretrain_config", "probe_config", "data_dir"):
            if name not in self.given:
                raise ValueError(f"{flag(name)} is needed. Received: none")
        for name in ("rows", "seeds"):
            if not getattr(self, name):
                raise ValueError(f"{flag(name)} must not be empty")

    def all_seeds(self):
        """Returns a list of the seeds asked for, and others in `out`."""
        return rows.seeds_in(self.out, self.seeds, finished, "probe")

    def script_settings(self):
        """Reads both configs, and checks them as the scripts do.

        Returns:
            Pair of `PretrainSettings` and `ProbeSettings`.
        """
        from audio_tf.runs.pretrain_settings import PretrainSettings
        from audio_tf.runs.probe import ProbeSettings

        places = self.those_given(("data_dir", "cache_dir"))
        pretraining = read_config(
            self.pretrain_config,
            PretrainSettings,
            "pretrain_config",
            OWN["pretrain_config"],
        )
        probing = read_config(
            self.probe_config,
            ProbeSettings,
            "probe_config",
            OWN["probe_config"],
        )
        return (
            PretrainSettings(**{**pretraining, **places}),
            ProbeSettings(
                **{**probing, **places, **self.those_given(PROBE_FLAGS)}
            ),
        )


def pretrain(attention, seed, settings):
    """Pre-trains the model of a row, unless that is done.

    Args:
        attention: str, a key of `TABLE_2`.
        seed: int.
        settings: `SslSettings`.

    Returns:
        `pathlib.Path` of its preset.
    """
    from audio_tf.runs.pretrain import is_trained

    out = pathlib.Path(settings.out, attention, f"pretrain_{seed}")
    if not is_trained(out / "preset"):
        check_configs(settings)
        processes.run(
            "pretrain",
            *("--config", settings.pretrain_config),
            *("--attention", attention, "--seed", seed),
            *rows.as_flags(settings.those_given(("data_dir", "cache_dir"))),
            *("--out", out, *rows.resumed(out)),
        )
    return out / "preset"


def probe(attention, seed, settings):
    """Pre-trains and probes a row, unless that is done.

    Args:
        attention: str, a key of `TABLE_2`.
        seed: int.
        settings: `SslSettings`.
    """
    out = pathlib.Path(settings.out, attention, f"probe_{seed}")
    if finished(out):
        return
    if attention == "features":
        pretraining, _ = settings.script_settings()
        flags = rows.as_flags(pretraining.those_given(FEATURE_SETTINGS))
    else:
        flags = ["--model", pretrain(attention, seed, settings)]
    places = ("data_dir", "cache_dir", *PROBE_FLAGS)
    check_configs(settings)
    processes.run(
        "probe",
        *("--config", settings.probe_config, *flags),
        *("--tasks", *TASKS, "--seed", seed),
        *rows.as_flags(settings.those_given(places)),
        *("--out", out, *rows.resumed(out)),
    )


def finished(out):
    """Returns whether the report of probes has all tasks."""
    return set(TASKS) <= set(read_report(out)["tasks"])


def read_report(out):
    """Reads the report of a folder of probes; without one, has no tasks."""
    file = out / "probes.json"
    return json.loads(file.read_text()) if file.is_file() else {"tasks": {}}


def inference_s(settings):
    """Measures how long inference takes, unless that is done.

    The models have the size `--time-model` and random weights, on which time
    does not depend; tables are folded. They take turns, so that other load on
    the machine meets them alike, and the median of the turns counts.

    Args:
        settings: `SslSettings`.

    Returns:
        Dict by attention of the seconds for one clip of `time_frames`.
    """
    file = pathlib.Path(settings.out, "inference.json")
    pretraining, _ = settings.script_settings()
    asked = {
        "model": settings.time_model,
        "frames": settings.time_frames,
        "repeats": settings.repeats,
        "options": pretraining.those_given(("causal",)),
    }
    return processes.measure(["reproduce", "time"], file, asked)["seconds"]


def time_inference(file, asked):
    """Measures in a process of its own what `inference_s` returns.

    Args:
        file: path of the JSON file that is written.
        asked: dict of the model's size, frames, turns and arguments.
    """
    import numpy as np

    from audio_tf import attention, models

    length, built = asked["frames"], {}
    for name in TABLE_2:
        if name == "features":
            continue
        built[name] = models.AudioAlbertBackbone.from_preset(
            asked["model"],
            attention=name,
            made_for_frames=length,
            **asked["options"],
        )
        attention.fold(built[name])
    dim = built[BASELINE].feature_dim
    clip = np.random.default_rng(0).normal(size=(1, length, dim))
    clip = clip.astype("float32")
    medians = rows.in_turn(
        {
            name: functools.partial(model.predict_on_batch, clip)
            for name, model in built.items()
        },
        asked["repeats"],
    )
    files.write_json(file, {"asked": asked, "seconds": medians})


def finished_reports(settings):
    """Reads the reports of all seeds that are finished, of any command.

    Returns:
        Dict by row of a list of reports.

    Raises:
        ValueError: if two rows of a seed are of different corpora, which
            cannot be compared; seeds may draw splits of their own.
    """
    from audio_tf.runs import corpus_records

    reports, first = {}, {}
    seeds = settings.all_seeds()
    for name in TABLE_2:
        for seed in seeds:
            out = pathlib.Path(settings.out, name, f"probe_{seed}")
            if finished(out):
                report = read_report(out)
                reports.setdefault(name, []).append(report)
                corpus_records.check_alike(first, out, report["corpus"], seed)
    return reports


def write_table(settings, seconds):
    """Writes and returns the table of all rows that have finished seeds."""
    facts = {
        name: row_facts(name, reports, seconds)
        for name, reports in finished_reports(settings).items()
    }
    table = format_table(facts, seconds.get(BASELINE))
    out = pathlib.Path(settings.out)
    files.write_text(out / "table2.md", table + "\n")
    files.write_json(out / "table2.json", facts)
    return table


def reproduce_ssl(settings):
    """Runs all rows, and ends with 1 if one has failed."""
    check_folder("out", settings.out, settings.data_dir)
    begin(settings)
    seconds = inference_s(settings) if settings.repeats else {}
    failures = rows.Failures()
    rows.tell_of_seeds(settings.out, settings.seeds, settings.all_seeds())
    for name in TABLE_2:
        if name not in settings.rows:
            continue
        for seed in settings.seeds:
            with failures.kept():
                probe(name, seed, settings)
            table = write_table(settings, seconds)
    print("\nmeasured (paper); inference relative to full attention")
    print(table)
    failures.end()


def begin(settings):
    """Makes the folder of the table, once configs and corpus stand.

    Raises:
        FileNotFoundError: if a corpus or a part of it is not there.
        ValueError: if the folder has rows of another setting, or of the
            corpus as it was before files of it changed, or the probes lack a
            split, phones or speakers, or their phones do not fit the frames.
    """
    from audio_tf.data.frame_labels import Frames, labels_a_frame
    from audio_tf.runs.probe_splits import check_targets, load_splits

    pretraining, probing = settings.script_settings()
    # What the probes lack must not be found after days of pre-training.
    corpora = load_splits(probing)
    check_targets(corpora)
    if set(settings.rows) != {"features"}:
        pretraining.load()  # Or each row would find what is not there.
    labels_a_frame(
        corpora["train"].label_rate_hz,
        Frames.of(pretraining.feature_layer()).rate_hz,
        probing.by_time,
        settings.probe_config,
    )
    place = str(pathlib.Path(settings.data_dir).resolve())
    asked = configured(pretraining, probing)
    rows.begin(settings.out, {**asked, "data_dir": place})
    check_begun(pathlib.Path(settings.out), pretraining, probing)


def configured(pretraining, probing):
    """Returns a dict of what the configs of a table say of its rows.

    Args:
        pretraining, probing: pair that `SslSettings.script_settings` returns.
    """
    places = {"data_dir", "cache_dir"}
    return {
        "pretrain_config": pretraining.those_given(pretraining.given - places),
        "probe_config": probing.those_given(probing.given - places),
    }


def check_configs(settings):
    """Checks that no config was edited since the table has begun."""
    rows.check_configs(settings.out, configured(*settings.script_settings()))


def check_begun(out, pretraining, probing):
    """Checks that what was begun in a folder is of the corpus as it is now.

    Or models that have learned from other utterances would stand beside each
    other: their probes need not see what the pre-training has heard.

    Args:
        out: `pathlib.Path` of the table's folder.
        pretraining: `PretrainSettings`.
        probing: `ProbeSettings`.

    Raises:
        ValueError: if files of the corpus have changed since.
    """
    from audio_tf.runs import corpus_records, pretrain, probe_splits

    for kind, asked, listed in (
        ("pretrain", pretraining, pretrain.listed),
        ("probe", probing, probe_splits.listed),
    ):
        records = {}
        for run in rows.runs_in(out, kind):
            seed = rows.seed_of(run, kind)
            if seed not in records:
                records[seed] = listed(asked.replace(seed=seed))[1]
            corpus_records.check(run, records[seed])
