"""Release a trained model: a folder that `from_preset` loads by its name.

    audio-tf release --run runs/esc10 --name my_esc10 \\
        --use "It names one of ten sounds." --corpus "ESC-10" \\
        --licence "CC BY 3.0" --baseline runs/esc10/baseline.json

Scores the split --split of the run's corpus by the preset of the run, and
writes the preset, its provenance and a model card into the folder --into,
beside other released presets, with an entry in index.json. A run of
`pretrain` is released with the figures of its probes: --probes is the
probes.json of the encoder, --baseline that of the plain features.

A model that has learned from all clips at hand has none left to be scored by:
--measured-run is a run trained alike on fewer of them, whose figures the card
tells, and says so.

A model is refused whose figure is below that of the baseline, or whose corpus,
or a clip of it as far as its lists tell, forbids commercial use.
"""

import dataclasses
import functools
import os
import pathlib
import re
import shlex
import shutil

import keras

from audio_tf import files, models, released
from audio_tf.corpora.corpus import SPLITS
from audio_tf.models import presets
from audio_tf.runs import (
    finished_runs,
    history,
    model_card,
    release_figures,
    release_probes,
)
from audio_tf.runs.flags import check_folder, run_by_flags
from audio_tf.runs.release_latency import measure_latency
from audio_tf.runs.release_licences import check_licence, check_origin
from audio_tf.runs.settings import Settings, flag, setting, shared

NEEDED = ("run", "name", "use", "licence", "baseline")


@dataclasses.dataclass
class ReleaseSettings(Settings):
    """A finished run, and all that its card says beyond what is measured."""

    run: str | None = setting(
        None, "folder of the finished run", unless_given="it is needed"
    )
    name: str | None = setting(
        None, "name of the released preset", unless_given="it is needed"
    )
    use: str | None = setting(
        None,
        "what the model is for, in a sentence",
        unless_given="it is needed",
    )
    limits: str | None = setting(
        None,
        "what the model is not for",
        unless_given="what it was not measured on",
    )
    corpus: str | None = setting(
        None, "the corpus as the card names it", unless_given="its layout's"
    )
    licence: str | None = setting(
        None, "licence of the corpus", unless_given="it is needed"
    )
    baseline: str | None = setting(
        None,
        "JSON report of audio-tf baseline on the same clips; of pre-training, "
        "probes.json of the plain features",
        unless_given="it is needed",
    )
    probes: str | None = setting(
        None,
        "probes.json of a pre-trained encoder",
        unless_given="the model is a classifier",
    )
    measured_run: str | None = setting(
        None,
        "run trained alike on fewer clips, whose figures count where --run "
        "has learned from all there are",
        unless_given="--run",
    )
    split: str = setting("test", "split that is scored", SPLITS)
    data_dir: str | None = shared("data_dir", None, unless_given="the run's")
    cache_dir: str | None = shared("cache_dir", None, unless_given="the run's")
    replace: bool = setting(False, "replace an earlier release of the name")
    into: str = setting(
        os.fspath(released.ROOT), "folder of all released presets"
    )

    def check(self):
        super().check()
        for name in NEEDED:
            if not getattr(self, name):
                raise ValueError(f"--{name} is needed. Received: none")
        if self.split == "train":
            raise ValueError(
                "--split must be one that the model was not trained on. "
                "Received: 'train'"
            )
        # Before clips are scored and calls are timed.
        check_folder("into", self.into)
        check_licence(self.licence)
        released.check_name(self.name)
        self.check_name_is_free()

    def check_name_is_free(self):
        """Checks that no size and no other preset has the name.

        Raises:
            ValueError: if one has it, and is not replaced.
        """
        here = released.read_index(self.into)
        known = models.list_released().get(self.name)
        elsewhere = known is not None and self.name not in here
        if elsewhere or self.name in models.list_sizes():
            raise ValueError(
                "--name must not be a size's or another preset's. "
                f"Received: {self.name}"
            )
        if self.name in here and not self.replace:
            raise ValueError(
                f"--name is released already in {self.into}; --replace "
                f"replaces it. Received: {self.name}"
            )


def without_folders(value):
    """Shortens every absolute path in what JSON can hold to its last part.

    A card tells nothing of the machine that a model was trained on.

    Args:
        value: dict, list, text, number or `None`. The `command` of a dict is
            taken word by word: a path in it may have blanks. Its `labels`
            stay: those of AudioSet begin with a slash.
    """
    if isinstance(value, dict):
        own = {"command": command_without_folders, "labels": list}
        return {
            key: own.get(key, without_folders)(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [without_folders(each) for each in value]
    if isinstance(value, str):
        if os.path.isabs(value):
            return os.path.basename(value.rstrip("/")) or value
        return re.sub(
            r"(?<![\w.:/])(?:/[^/\s'\"]+)*/([^/\s'\"]+)", r"\1", value
        )
    return value


def command_without_folders(command):
    """Shortens every absolute path in a command to its last part.

    Args:
        command: str, as `shlex.join` writes it.
    """
    words = []
    for word in shlex.split(command):
        name, sign, value = "", "", word
        if word.startswith("--"):
            name, sign, value = word.partition("=")
        words.append(name + sign + without_folders(value))
    return shlex.join(words)


def best_epoch(folder, run):
    """Returns a text on the epoch that was kept, empty if the last was.

    Args:
        folder: `pathlib.Path` of the run.
        run: dict of its settings.
    """
    rows = history.read(folder / "history.csv")[1]
    # That of pre-training keeps the last, and monitors nothing.
    best = history.best_row(rows, run.get("monitor"))
    if best is None:
        return ""
    figure = float(rows[best][run["monitor"]])
    return (
        f"epoch {best + 1} of {len(rows)}, the best by {run['monitor']}, "
        f"{figure:.4f}"
    )


def measure(settings, model):
    """Measures a classifier, or that which stands for it.

    Args:
        settings: `ReleaseSettings`.
        model: the `AudioClassifier` of `settings.run`.

    Returns:
        `release_figures.Figures`.
    """
    changes = settings.those_given(("data_dir", "cache_dir"))
    run = finished_runs.finished_run(settings.run, **changes)
    if settings.measured_run is None:
        return release_figures.of_classifier(settings, run, model)
    scored = finished_runs.finished_run(settings.measured_run, **changes)
    finished_runs.check_alike(run, scored)
    figures = release_figures.of_classifier(
        settings,
        scored,
        models.AudioClassifier.from_preset(scored.folder / "preset"),
    )
    learned, fewer = (
        each.origin["corpus"]["train"]["files"] for each in (run, scored)
    )
    meaning = (
        f"{figures.meaning} They are of a model that was trained alike on "
        f"{fewer} of the clips; this one has learned from {learned}."
    )
    ours, theirs = (
        best_epoch(each.folder, each.origin["settings"])
        for each in (run, scored)
    )
    # The card tells ours among what the model was trained on.
    if ours or theirs:
        meaning += f" That one has the weights of {theirs or 'its last epoch'}."
    return dataclasses.replace(figures, meaning=meaning)


def check_given(settings, is_classifier):
    """Checks that no setting is given that would count for nothing.

    Args:
        settings: `ReleaseSettings`.
        is_classifier: bool, whether the model of the run is a classifier.

    Raises:
        ValueError: if one is.
    """
    others = ("measured_run", "data_dir", "cache_dir", "split")
    reason = "is of classifiers; --probes measure an encoder"
    if is_classifier:
        others = ("probes",)
        reason = "is of encoders; a classifier is scored on --split"
    for name, value in settings.those_given(others).items():
        raise ValueError(f"{flag(name)} {reason}. Received: {value}")


def run(settings):
    """Writes the folder of a released preset, and enters it into the index.

    Args:
        settings: `ReleaseSettings`.

    Returns:
        The `released.Released`.
    """
    folder = pathlib.Path(settings.run)
    preset = folder / "preset"
    origin = finished_runs.read_origin(folder)
    check_origin(origin)
    loader = presets.find(preset)
    is_classifier = (preset / "task.json").is_file()
    check_given(settings, is_classifier)
    if is_classifier:
        model = models.AudioClassifier.from_preset(preset)
        figures = measure(settings, model)
        latency = measure_latency(model)
    else:
        model = models.AudioBackbone.from_preset(preset)
        figures = release_probes.of_encoder(settings, model)
        latency = None
    release_figures.check_baseline(figures)
    told = without_folders(origin)
    facts = {
        "model": keras.saving.get_registered_name(type(model)),
        "backbone": loader.config["registered_name"],
        "description": settings.use,
        "corpus": settings.corpus or origin["settings"]["dataset"],
        "split": settings.split if is_classifier else "test",
        "command": told["command"],
        "seed": origin["settings"]["seed"],
        "metric": figures.metric,
        "licence": settings.licence,
        "parameters": model.count_params(),
    }
    place = pathlib.Path(settings.into, settings.name)
    with files.whole_folder(place) as new:
        for path in preset.iterdir():
            shutil.copy(path, new / path.name)
        files.write_json(new / "provenance.json", told)
        card = model_card.write(
            settings.name,
            facts,
            figures,
            limits=settings.limits,
            kept=best_epoch(folder, origin["settings"]),
            origin=told,
            latency=latency,
            registered=place.parent.resolve() == released.ROOT.resolve(),
        )
        (new / "README.md").write_text(card, encoding="utf-8")
        # Before it takes the place of an earlier one.
        released.check_size(new)
    entry = released.add(place, **facts)
    print(f"{place}: {figures.metric}, {entry.size_bytes / 1e6:.2f} MB")
    return entry


main = functools.partial(run_by_flags, run, ReleaseSettings, __doc__)
