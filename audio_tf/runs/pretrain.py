"""Pre-train an Audio ALBERT to fill in masked frames of unlabelled speech.

    audio-tf pretrain --config training/configs/librispeech_ssl.py \\
        --data-dir LibriSpeech --attention full --out runs/full
    audio-tf pretrain --out runs/full --resume
    audio-tf pretrain --model runs/full/preset --features paper \\
        --data-dir MORE --out runs/more

The folder --out gets config.json, history.csv, last.keras, TensorBoard logs
with pictures of what is filled in, and preset/, the encoder from waveform to
frames, which `audio-tf probe`, AudioClassifier and `audio-tf inspect` take;
both are written anew every --picture-every checkpoints, and at the end.
"""

import functools
import json
import pathlib
import sys

import keras

from audio_tf import console, files, models
from audio_tf.audio import RESAMPLER
from audio_tf.data.shares import WHOLE
from audio_tf.runs import (
    callbacks,
    checkpoints,
    corpus_records,
    heard,
    history,
    host_callbacks,
    hosts,
    provenance,
)
from audio_tf.runs.flags import run_by_flags
from audio_tf.runs.pretrain_batches import load_batches
from audio_tf.runs.pretrain_model import build
from audio_tf.runs.pretrain_settings import PretrainSettings
from audio_tf.runs.reconstruction import ReconstructionPictures

PICTURED = 4
# Settings that may differ when a run goes on.
FREE_SETTINGS = ("data_dir", "cache_dir", "picture_every")


class Presets(keras.callbacks.Callback):
    """Writes the encoder as a preset after some epochs and after the last.

    Args:
        settings: `PretrainSettings`.
        out: `pathlib.Path`, the folder of the run.
        facts: dict for the preset's `provenance.json`.
        hears: list of `heard.Heard`, as `write_preset` takes it.
    """

    def __init__(self, settings, out, facts, hears):
        super().__init__()
        self.settings = settings
        self.out = out
        self.facts = facts
        self.hears = hears

    def on_epoch_end(self, epoch, logs=None):
        settings = self.settings
        done = (epoch + 1) * settings.epoch_steps
        last = done == settings.steps
        if not last and (epoch + 1) % settings.picture_every:
            return
        write_preset(
            self.model, settings, self.out, self.facts, done, self.hears
        )


def write_preset(model, settings, out, facts, done, hears):
    """Writes the preset of a run, whole or not at all.

    Args:
        model: `MaskedAcousticModel`.
        settings: `PretrainSettings`.
        out: `pathlib.Path`, the folder of the run.
        facts: dict for the preset's `provenance.json`.
        done: int, steps that the model was trained for.
        hears: list of `heard.Heard`, what it was trained on, before, too.
    """
    encoder = models.SpeechEncoder(model.backbone, settings.feature_layer())
    facts = {**facts, "steps_done": done, "steps": settings.steps}
    with files.whole_folder(out / "preset") as new:
        encoder.save_to_preset(str(new))
        files.write_json(new / "provenance.json", facts)
        heard.write(new, hears)


def is_trained(preset):
    """Returns whether a preset was written after its training's last step.

    Args:
        preset: `pathlib.Path` of the preset of a run, which may be missing.
    """
    file = preset / "provenance.json"
    if not file.is_file():
        return False
    facts = json.loads(file.read_text())
    return facts["steps_done"] == facts["steps"]


def fit(settings, model, batches, out, facts, hears, share=WHOLE):
    """Trains a new or a resumed model to the last step.

    Args:
        settings: `PretrainSettings`.
        model: compiled `MaskedAcousticModel`.
        batches: dict of `Batches` by split, as `load_batches` returns it.
        out: `pathlib.Path`, the folder of the run.
        facts: dict for the preset's `provenance.json`.
        hears: list of `heard.Heard`, as `write_preset` takes it.
        share: `Share` of this host.
    """
    micro_batches = settings.epoch_steps * settings.accumulate
    done = checkpoints.epochs_done(out / "last.keras")
    if share.is_first:
        history.rewind(out / "history.csv", done)
    # What is drawn is computed by all hosts.
    shown_in = hosts.folder(out, share)
    made = settings.feature_layer()
    shown, targets = batches.get("val", batches["train"]).some(PICTURED)
    hooks = [
        # Or the last good checkpoint would be overwritten.
        keras.callbacks.TerminateOnNaN(raise_error=True),
        callbacks.EpochSeeds(settings.seed),
        keras.callbacks.TensorBoard(shown_in / "logs", write_graph=False),
        host_callbacks.OfFirst([history.History(out / "history.csv")], share),
        ReconstructionPictures(
            shown,
            shown_in / "logs" / "pictures",
            shown_in / "reconstruction.png",
            made.options["hop_s"],
            settings.picture_every,
            made.stacking.size,
            targets,
        ),
        host_callbacks.OfFirst(
            [
                checkpoints.LastCheckpoint(out / "last.keras"),
                Presets(settings, out, facts, hears),
            ],
            share,
        ),
    ]
    verbose = 1 if sys.stdout.isatty() else 2
    model.fit(
        batches["train"].training(done * micro_batches),
        validation_data=batches["val"].validation()
        if "val" in batches
        else None,
        steps_per_epoch=micro_batches,
        initial_epoch=done,
        epochs=settings.steps // settings.epoch_steps,
        callbacks=hooks,
        shuffle=False,  # The dataset has its own order for each pass.
        verbose=verbose,
    )


def run(settings, out):
    """Pre-trains a model, from the corpus to the preset.

    A run that has begun in the folder goes on.

    Args:
        settings: `PretrainSettings`.
        out: path of the run's folder.
    """
    out = pathlib.Path(out)
    # Devices are found before anything is computed.
    with hosts.scope(settings, out) as share:
        keras.mixed_precision.set_global_policy(settings.precision)
        run_on_devices(settings, out, share)


def listed(settings):
    """Lists the utterances that a model learns from and is validated on.

    Args:
        settings: `PretrainSettings`.

    Returns:
        Pair of a dict of `SpeechCorpus` by split, of those that have any, and
        their `corpus_record`.
    """
    corpora = {
        split: corpus
        for split, corpus in settings.load().items()
        if split in ("train", "val") and len(corpus)
    }
    return corpora, corpus_records.make(corpora, settings.file_root())


def run_on_devices(settings, out, share):
    """Pre-trains a model as `run` does, within the scope of its devices."""
    last = out / "last.keras"
    # A model that cannot be built is told before hours of decoding.
    model = keras.saving.load_model(last) if last.is_file() else None
    if model is None:
        model = build(settings)
        console.print_summary(model)
    (corpora, record), root = listed(settings), settings.file_root()
    # Before all is decoded, for which hosts wait for each other.
    hosts.check_same(settings, record, out, FREE_SETTINGS, share)
    before = heard.began_with(settings, out)
    batches, failures = load_batches(
        settings, corpora, model.backbone.max_frames, share
    )
    record = corpus_records.leave_out(record, root, failures)
    hosts.check_same(settings, record, out, FREE_SETTINGS, share)
    built = provenance.model_facts(model.backbone)
    begun = {"model": built, "built_on": provenance.built_on(settings, out)}
    facts = {
        **provenance.run_facts(settings, out),
        **begun,
        "corpus": corpus_records.summary(record),
        "build": settings.build_facts(),
        "resampler": RESAMPLER,
    }
    if share.is_first:
        heard.keep(out, before)
        provenance.begin_run(out, settings, record, **begun)
    # What validation hears has changed no weight.
    own = heard.Heard(pretrained=batches["train"].clips.marks)
    done = checkpoints.epochs_done(last) * settings.epoch_steps
    if done < settings.steps:
        fit(settings, model, batches, out, facts, [own, before], share)
    elif share.is_first and not is_trained(out / "preset"):
        # A run that was killed behind its last checkpoint leaves none, or one
        # of an earlier step.
        with hosts.alone():
            write_preset(model, settings, out, facts, done, [own, before])
    print(f"\npreset: {out / 'preset'}")


main = functools.partial(
    run_by_flags,
    run,
    PretrainSettings,
    __doc__,
    free=FREE_SETTINGS,
    kept=checkpoints.kept,
)
