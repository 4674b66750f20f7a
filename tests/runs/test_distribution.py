"""Two devices train as one does; each backend in a process of its own."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import soundfile
import tiny

from audio_tf.runs import distribution

# Masks and losses that do not depend on how a batch is cut.
PROGRAM = """
import pathlib
import sys

import keras
import numpy as np
import soundfile

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
from audio_tf import models
from audio_tf.runs import distribution, pretrain


def figures():
    keras.utils.set_random_seed(0)
    backbone = models.AudioAlbertBackbone(
        num_layers=1,
        num_heads=2,
        key_dim=4,
        hidden_dim=8,
        intermediate_dims=(8,),
        feature_dim=13,
    )
    model = models.MaskedAcousticModel(
        backbone,
        masking="s3prl",
        masking_kwargs={
            "mask_rate": 1.0,
            "run_frames": 1,
            "zero_rate": 1.0,
            "replace_rate": 0.0,
        },
        compile=False,
    )
    model.compile(keras.optimizers.SGD(0.5))
    x = np.random.default_rng(0).normal(size=(12, 11, 13)).astype("float32")
    history = model.fit(
        x, batch_size=6, epochs=3, shuffle=False, verbose=0,
        validation_data=x[:4],
    )
    for name in ("loss", "val_loss"):
        print("figures", name, *history.history[name])
    sums = [float(np.abs(w).sum()) for w in model.get_weights()]
    print("figures weights", *sums)
    if keras.backend.backend() != "jax":
        return
    try:
        model.evaluate(x[:5], verbose=0)
        print("five rows: one piece")
    except Exception as error:
        print("five rows:", type(error).__name__)


for strategy in ("none", "data_parallel"):
    with distribution.scope(strategy):
        print("devices", distribution.num_devices())
        figures()
        if strategy != "none" and keras.backend.backend() == "tensorflow":
            # Collectives of a second strategy fail in one process.
            mirrored = tf.distribute.get_strategy()
            distribution.SCOPES["tensorflow"] = mirrored.scope

out, strategy, kwargs = sys.argv[1:]
out = pathlib.Path(out)
(out / "corpus").mkdir()
rng = np.random.default_rng(0)
for number in range(20):
    noise = 0.3 * rng.standard_normal(3_000)
    soundfile.write(out / "corpus" / f"{number}.wav", noise, 8_000)
pretrain.main(
    [
        *("--dataset", "folder", "--data-dir", str(out / "corpus")),
        *("--cache-dir", str(out / "cache"), "--features", "s3prl"),
        *("--target", "input", "--feature-cache", "--model-kwargs", kwargs),
        *("--batch-size", "6", "--steps", "2", "--save-every", "1"),
        *("--buckets", "1", "--distribution", strategy),
        *("--out", str(out / "run")),
    ]
)
"""


# The same steps, by one device at once and by two devices in three parts. A
# step has all utterances, as other batches are others in parts, too; all frames
# are masked, as parts draw other masks; and the steps are the first of many, as
# the rate falls from part to part.
ACCUMULATING = """
import json
import pathlib
import sys

import keras
import numpy as np
import soundfile

from audio_tf.data.shares import Share
from audio_tf.runs import distribution, pretrain, pretrain_batches

out, kwargs = sys.argv[1:]
out = pathlib.Path(out)
(out / "corpus").mkdir()
rng = np.random.default_rng(0)
for number in range(14):
    noise = 0.02 * (1 + number) * rng.standard_normal(3_000)
    soundfile.write(out / "corpus" / f"{number}.wav", noise, 8_000)
for strategy, parts in (("none", 1), ("data_parallel", 3)):
    settings = pretrain.PretrainSettings(
        dataset="folder",
        data_dir=str(out / "corpus"),
        cache_dir=str(out / "cache"),
        features="s3prl",
        target="input",
        feature_cache=True,
        buckets=1,
        masking="s3prl",
        masking_kwargs={
            "mask_rate": 1.0,
            "run_frames": 1,
            "zero_rate": 1.0,
            "replace_rate": 0.0,
        },
        model_kwargs=json.loads(kwargs),
        warmup=0.0,
        learning_rate=0.1,
        steps=100_000,
        batch_size=12,
        accumulate=parts,
        distribution=strategy,
    )
    with distribution.scope(settings.distribution):
        keras.utils.set_random_seed(0)
        share = Share(devices=distribution.num_devices())
        found, _ = pretrain_batches.load_batches(
            settings, {"train": settings.load()["train"]}, None, share
        )
        model = pretrain.build(settings)
        history = model.fit(
            found["train"].training(0),
            epochs=4,
            steps_per_epoch=parts,
            verbose=0,
        )
        facts = {
            "devices": share.devices,
            "batches": len(found["train"]),
            "losses": history.history["loss"],
        }
        print("found", json.dumps(facts))
"""


def run(backend, arguments, devices=1):
    """Runs Python on a backend, and returns the process that is done."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices} "
            "--xla_backend_optimization_level=0",
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


# On JAX, two devices of one busy CPU wait for each other in vain at times.
@pytest.mark.long
@pytest.mark.parametrize(
    ("backend", "strategy"),
    [
        pytest.param("tensorflow", "data_parallel", marks=pytest.mark.slow),
        ("jax", "none"),
    ],
)
def test_two_devices_equal_one_and_pretrain(backend, strategy, tmp_path):
    pytest.importorskip(backend)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    arguments = [program, tmp_path, strategy, json.dumps(tiny.SIZES)]
    done = run(backend, arguments, devices=2)
    found = []
    for part in done.stdout.split("devices ")[1:]:
        lines = [
            line.split()[1:]
            for line in part.splitlines()
            if line.startswith("figures")
        ]
        assert len(lines) == 3
        found.append(
            {name: [float(each) for each in values] for name, *values in lines}
        )
        if backend == "jax":
            # Five rows cannot be cut in two, if they are cut.
            assert ("five rows: one piece" in part) == part.startswith("1\n")
    one, two = found
    assert "devices 1\n" in done.stdout and "devices 2\n" in done.stdout
    for name in one:
        assert two[name] == pytest.approx(one[name], rel=1e-4), name
    # Or the weights would be equal because nothing was trained.
    assert len(set(one["loss"])) == 3
    assert (tmp_path / "run" / "preset" / "provenance.json").is_file()


@pytest.mark.long
def test_two_devices_in_parts_equal_one_at_once(tmp_path):
    """`--accumulate` over the devices of one host: each step is the same."""
    pytest.importorskip("jax")
    program = tmp_path / "program.py"
    program.write_text(ACCUMULATING)
    kwargs = json.dumps({**tiny.SIZES, "dropout": 0.0})
    done = run("jax", [program, tmp_path, kwargs], devices=2)
    one, two = (
        json.loads(line.removeprefix("found "))
        for line in done.stdout.splitlines()
        if line.startswith("found ")
    )
    assert (one["devices"], one["batches"]) == (1, 1)
    assert (two["devices"], two["batches"]) == (2, 3)
    assert len(set(one["losses"])) == 4
    np.testing.assert_allclose(two["losses"], one["losses"], rtol=1e-4)


@pytest.mark.long
def test_a_classifier_trains_on_jax(tmp_path):
    """By the recipe: the averages of the weights are scored and kept."""
    pytest.importorskip("jax")
    rng = np.random.default_rng(1)
    for label in ("loud", "soft"):
        folder = tmp_path / "sounds" / label
        folder.mkdir(parents=True)
        for number in range(10):
            noise = 0.3 * rng.standard_normal(3_000) ** (1 + (label == "soft"))
            soundfile.write(folder / f"{number}.wav", noise, 8_000)
    mel = {**tiny.SIZES, "frontend_filters": 8, "sample_rate_hz": 8000}
    command = ["-m", "audio_tf.cli", "train"]
    command += ["--dataset", "folders", "--data-dir", tmp_path / "sounds"]
    command += ["--cache-dir", tmp_path / "cache", "--out", tmp_path / "run"]
    command += ["--model-kwargs", json.dumps(mel), "--chunk-s", "0.25"]
    command += ["--batch-size", "4", "--epochs", "2", "--no-test"]
    run("jax", command)
    assert len((tmp_path / "run" / "history.csv").read_text().split()) == 3
    assert (tmp_path / "run" / "preset" / "heard.npy").is_file()


def test_a_strategy_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="data_parallel.*Received.*'many'"):
        distribution.scope("many")


def test_several_hosts_are_refused(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{}")
    with pytest.raises(ValueError, match="one host"):
        distribution.scope("data_parallel")
