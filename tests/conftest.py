import contextlib
import fcntl
import gc
import importlib
import importlib.metadata
import importlib.util
import os
import pathlib
import runpy
import shutil
import sys
import unittest.mock

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Small tensors: more threads than cores only slow parallel workers down.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Nor does the order of sums depend on how threads are scheduled.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
# What XLA compiles in a test runs once or twice: to optimise it takes longer.
XLA_FLAGS = "--xla_backend_optimization_level=0"
if os.environ.get("KERAS_BACKEND") == "jax":
    release = importlib.metadata.version("jaxlib").split(".")[:2]
    if tuple(map(int, release)) < (0, 11):
        # Nor is there much to fuse in small tensors; these take twice as long.
        # Later ones have no others, and end at a flag that they do not know.
        XLA_FLAGS += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", XLA_FLAGS)

ROOT = pathlib.Path(__file__).resolve().parent.parent


# Folders whose files take longest, so that no worker is left with one alone;
# `tests` stands for the files beside this one.
LONGEST = ("export", "runs", "analysis", "tests", "models", "attention", "cli")


def pytest_collection_modifyitems(items):
    """Puts the longest files first; within a file the order stays."""

    def place(item):
        folder = item.path.parent.name
        return LONGEST.index(folder) if folder in LONGEST else len(LONGEST)

    items.sort(key=place)


def pytest_collection_finish():
    """Leaves what imports made out of all later garbage collections.

    Keras collects after each layer that it quantises, and Python after some
    allocations: over the objects of TensorFlow that takes a quarter of a
    second each time. What tests leave behind adds to it, so Python collects
    more seldom than by itself.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)


@pytest.fixture(scope="session")
def shared_data():
    """Real audio beside the repository; CI has it, users may not."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"REAL AUDIO IS NOT TESTED: no folder {folder.name}")
    return folder


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """A function that returns a folder which one worker makes for all.

    It takes a name and a function of an empty folder, which fills it. No test
    may change what is there.
    """
    top = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        top = top.parent

    def made(name, make):
        folder, partial = top / name, top / f"{name}.partial"
        with open(top / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir()
                make(partial)
                partial.rename(folder)
        return folder

    return made


@pytest.fixture(scope="session")
def mini_fsd50k(shared_data, made_once):
    """A small corpus of real clips in the folders of FSD50K's release."""
    script = runpy.run_path(str(shared_data / "make_fsd50k_mini.py"))
    return made_once("mini_fsd50k", script["main"])


@pytest.fixture(scope="session")
def shared_export(made_once):
    """A `serving_cases.Export` that many tests look at and none changes."""
    import serving_cases

    folder = made_once("shared_export", serving_cases.write_shared_export)
    return serving_cases.read_shared_export(folder)


@pytest.fixture
def main(monkeypatch, tmp_path):
    """A function that runs a script of `audio_tf.runs` in this process.

    It has a cache of its own.
    """
    monkeypatch.setenv("AUDIO_TF_CACHE", str(tmp_path / "cache"))

    def run(script, *arguments):
        module = importlib.import_module(f"audio_tf.runs.{script}")
        module.main([str(argument) for argument in arguments])

    return run


@pytest.fixture
def refusal(main, capsys):
    """A function that returns the one line that a script must end with."""

    def refuse(script, *arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(script, *arguments)
        assert stopped.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return refuse


@pytest.fixture
def eager_models(monkeypatch):
    """All models run without graphs, whoever compiles them."""
    import keras
    import tiny

    monkeypatch.setattr(keras.Model, "run_eagerly", tiny.ALWAYS_EAGER)


@pytest.fixture
def no_pictures(monkeypatch):
    """Runs draw nothing, as without matplotlib; a picture costs a second."""
    from audio_tf.runs import showing

    monkeypatch.setattr(showing, "can_draw", lambda: False)


@pytest.fixture
def texts_written(monkeypatch):
    """Names of the files that texts go to, before they are given others."""
    import pathlib

    names, write = [], pathlib.Path.write_text

    def noted(path, *arguments, **options):
        names.append(path.name)
        return write(path, *arguments, **options)

    monkeypatch.setattr(pathlib.Path, "write_text", noted)
    return names


@pytest.fixture
def channels_first():
    """Keras is set to images whose channels come before rows and columns."""
    import keras

    before = keras.config.image_data_format()
    keras.config.set_image_data_format("channels_first")
    yield
    keras.config.set_image_data_format(before)


@pytest.fixture
def rng():
    return np.random.default_rng(2024)


def no_seed_of_tensorflow():
    """A context in which Keras leaves the seed of TensorFlow's own ops alone.

    Nothing here uses those, and setting it throws away all kernels: every
    function that tests share would be optimized anew in each of them.
    """
    if importlib.util.find_spec("tensorflow") is None:
        return contextlib.nullcontext()
    return unittest.mock.patch("tensorflow.random.set_seed")


def seed_keras():
    """Sets what Keras draws from, here and in fixtures of several tests."""
    import keras

    with no_seed_of_tensorflow():
        keras.utils.set_random_seed(7)


def pytest_fixture_setup(fixturedef):
    """Lets no fixture of several tests depend on which test asks first.

    Each worker has other tests before it, and each of those draws numbers.
    """
    if fixturedef.scope != "function":
        seed_keras()


@pytest.fixture(autouse=True)
def whole_layers(request, monkeypatch):
    """On JAX a layer that is called is one program, as `predict` has it."""
    import keras

    if keras.backend.backend() != "jax" or request.node.get_closest_marker(
        "op_by_op"
    ):
        return
    import jax_programs

    monkeypatch.setattr(
        keras.Layer, "__call__", jax_programs.whole(keras.Layer.__call__)
    )


@pytest.fixture(autouse=True)
def tests_look_at_tensors(monkeypatch):
    """On Torch a test may ask NumPy for a tensor; `audio_tf` may not.

    Of itself Torch gives none that has a gradient, is on a GPU, or is
    bfloat16: code must call `ops.convert_to_numpy`.
    """
    import keras

    if keras.backend.backend() != "torch":
        return
    import torch

    def array(tensor, dtype=None, copy=None):
        caller = sys._getframe(1).f_globals["__name__"]
        if caller.startswith("audio_tf"):
            raise TypeError(f"{caller} gives NumPy a tensor of Torch")
        tensor = tensor.detach().cpu()
        if tensor.dtype == torch.bfloat16:
            tensor = tensor.float()
        return np.array(tensor.numpy(), dtype)

    monkeypatch.setattr(torch.Tensor, "__array__", array)


@pytest.fixture(autouse=True)
def float32_policy():
    """A failing test must not leave its dtype policy to the next."""
    import keras

    keras.mixed_precision.set_global_policy("float32")
    seed_keras()
    yield
    keras.mixed_precision.set_global_policy("float32")
