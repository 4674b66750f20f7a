"""Exports that tests share, the C++ runner of SavedModels and its cases.

    python tests/serving_cases.py FOLDER

builds the runner in FOLDER; `runner.cc` says how to call it.
"""

import fcntl
import functools
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import keras
import numpy as np
import pytest
import soundfile
import tensorflow as tf
import tiny
from tensorflow.core.protobuf import saved_model_pb2

from audio_tf import export as audio_export
from audio_tf.audio import resample
from audio_tf.models import AudioClassifier

SOURCES = pathlib.Path(__file__).resolve().parent / "serving"
LIBRARIES = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")


def command(source, target, folder):
    """What compiles the runner against the TensorFlow of a folder."""
    # Over its libraries, GNU's other linker takes four times as long.
    gold = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []
    flags = tf.sysconfig.get_compile_flags()
    return [
        "g++",
        "-O0",
        "-w",
        f"-I{folder}/include",
        *(flag for flag in flags if not flag.startswith("-I")),
        str(source),
        "-o",
        str(target),
        *gold,
        f"-L{folder}",
        # Nothing refers to the library that registers sessions and kernels.
        "-Wl,--no-as-needed",
        *(f"-l:{name}" for name in LIBRARIES),
        # `LD_LIBRARY_PATH` comes first.
        f"-Wl,--enable-new-dtags,-rpath,{folder}",
    ]


def build(folder=None):
    """Compiles the runner unless the same one is there.

    Args:
        folder: where to; one of this user's for temporary files if `None`,
            so that workers, later runs and other checkouts share it.

    Returns:
        `pathlib.Path` of the program, named after its sources, how it is
        compiled, and TensorFlow's version.

    Raises:
        RuntimeError: if it does not compile.
    """
    if folder is None:
        name = f"audio_tf_runner-{os.getuid()}"
        folder = pathlib.Path(tempfile.gettempdir(), name)
    folder = pathlib.Path(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sources = [SOURCES / "runner.cc", *sorted(SOURCES.glob("*.h"))]
    parts = [source.read_bytes() for source in sources]
    parts += [tf.__version__.encode(), " ".join(command("", "", "")).encode()]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    program = folder / f"runner-{digest}"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if program.exists():
            return program
        partial = program.with_suffix(".partial")
        done = subprocess.run(
            command(SOURCES / "runner.cc", partial, tf.sysconfig.get_lib()),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"runner.cc does not compile:\n{done.stderr}")
        partial.rename(program)
    return program


def runner():
    """The program; skips the test where it cannot be built."""
    if shutil.which("g++") is None:
        pytest.skip("THE C++ LOADER IS NOT TESTED: no g++")
    for name in LIBRARIES:
        if not pathlib.Path(tf.sysconfig.get_lib(), name).is_file():
            pytest.skip(f"THE C++ LOADER IS NOT TESTED: no {name}")
    return build()


def run(*arguments):
    """Exit status and all that the runner prints."""
    done = subprocess.run(
        [runner(), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "LD_LIBRARY_PATH": tf.sysconfig.get_lib(),
        },
    )
    return done.returncode, done.stdout


def write_case(folder, signature, inputs, outputs):
    """Writes one case of `runner check` and `runner time`.

    Args:
        folder: the case's own, which is made.
        signature: str, which one to run.
        inputs: dict of arrays; what is left out has the default.
        outputs: dict of arrays, all that the signature should give. Strings
            are lists or object arrays.

    Raises:
        ValueError: if an array is of NumPy's bytes, which end at the first
            of their trailing zeros.
    """
    folder = pathlib.Path(folder)
    for kind, arrays in (("inputs", inputs), ("outputs", outputs)):
        (folder / kind).mkdir(parents=True)
        for name, value in arrays.items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "S":
                raise ValueError(
                    f"{name}: NumPy drops trailing zeros of bytes; pass a "
                    f"list or an object array. Received: dtype={value.dtype}"
                )
            proto = tf.make_tensor_proto(value).SerializeToString()
            (folder / kind / f"{name}.pb").write_bytes(proto)
    (folder / "signature").write_text(f"{signature}\n")


def rename_op(model, old, new):
    """Gives the operations of one kind in a SavedModel another name."""
    path = model / "saved_model.pb"
    proto = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    nodes = [
        node
        for function in proto.meta_graphs[0].graph_def.library.function
        for node in function.node_def
        if node.op == old
    ]
    assert nodes
    for node in nodes:
        node.op = new
    path.write_bytes(proto.SerializeToString())


class Export:
    """A classifier beside its export.

    Args:
        model: an `AudioClassifier`.
        path: the model's folder, which is written.
        **kwargs: further arguments of `audio_tf.export.export`.

    Attributes:
        folder: `pathlib.Path` of the version.
    """

    def __init__(self, model, path, **kwargs):
        self.model = model
        self.folder = audio_export.export(model, path, **kwargs)

    @classmethod
    def written(cls, model, folder):
        """The export of a model in the folder of a version that is there."""
        found = cls.__new__(cls)
        found.model, found.folder = model, folder
        return found

    @functools.cached_property
    def loaded(self):
        """The `ExportedClassifier`."""
        return audio_export.ExportedClassifier(self.folder)


def classifier(
    chunk_s=0.25, silence_db=None, chunk_hop_s=None, labels="abc", **kwargs
):
    """A small `AudioClassifier`; `kwargs` are its backbone's."""
    return AudioClassifier(
        tiny.backbone(**kwargs),
        labels=list(labels),
        chunk_s=chunk_s,
        chunk_hop_s=chunk_hop_s,
        silence_db=silence_db,
    )


def shared_model():
    """The model of `shared_export`, with the same weights in each worker."""
    keras.utils.set_random_seed(7)
    return classifier(labels=["dog", "rain", "siren"], num_layers=2)


def write_shared_export(folder):
    """Exports the model with all signatures into a folder.

    It has two blocks, and the name that servers and clients take by default.
    """
    audio_export.export(
        shared_model(),
        folder / "audio_tf",
        stream=True,
        explain=True,
        max_clip_s=3.0,
        provenance={"seed": 3},
    )


def read_shared_export(folder):
    """The `Export` that `write_shared_export` has written there."""
    return Export.written(shared_model(), folder / "audio_tf" / "1")


def wav_file(audio, rate_hz=tiny.RATE_HZ, subtype="FLOAT"):
    """Contents of a WAV file of `(samples,)` or `(samples, channels)`."""
    file = io.BytesIO()
    soundfile.write(file, audio, rate_hz, subtype, format="WAV")
    return file.getvalue()


def heard(contents, rate_hz):
    """Samples of a WAV file at a rate, by soundfile and scipy."""
    audio, file_rate_hz = soundfile.read(
        io.BytesIO(contents), dtype="float32", always_2d=True
    )
    audio = audio.mean(axis=1, dtype="float32")
    return resample(audio, file_rate_hz, rate_hz)


def waveform_cases(model, inputs):
    """Inputs and outputs by signature, from the Keras model alone.

    Args:
        model: an `AudioClassifier`.
        inputs: dict of `waveform` and `lengths`.

    Returns:
        Dict of pairs of dicts for the signatures that take a waveform.
    """
    features = model.backbone(inputs)
    frames = np.asarray(features["sequence_output"])
    mask = np.asarray(features["frame_mask"])
    embedding = [
        row[real].mean(axis=0) for row, real in zip(frames, mask, strict=True)
    ]
    kernel, bias = model.output_dense.get_weights()
    over_time = 1.0 / (1.0 + np.exp(-(frames @ kernel + bias)))
    return {
        "serving_default": (inputs, {"scores": np.asarray(model(inputs))}),
        "embed": (inputs, {"embedding": np.array(embedding)}),
        "frames": (inputs, {"scores": over_time, "mask": mask}),
    }


def explain_case(model, clips, label):
    """Inputs and outputs of `explain`, from what the Keras model explains.

    Args:
        model: an `AudioClassifier`.
        clips: list of float32 arrays `(samples,)`, of which the signature is
            given a batch that is padded by noise.
        label: list of the number of the label of each clip, or -1.
    """
    lengths = np.array([len(clip) for clip in clips], "int32")
    rng = np.random.default_rng(11)
    waveform = rng.standard_normal((len(clips), lengths.max() + 7), "float32")
    found = []
    for row, clip, number in zip(waveform, clips, label, strict=True):
        row[: len(clip)] = clip
        name = None if number < 0 else model.label_names[number]
        found.append(model.explain((clip, model.sample_rate_hz), name))
    times = max(len(each["weights"]) for each in found)
    outputs = {
        "weights": [
            np.pad(each["weights"], [(0, times - len(each["weights"])), (0, 0)])
            for each in found
        ],
        "time_s": [
            np.pad(each["time_s"], (0, times - len(each["weights"])), "edge")
            for each in found
        ],
        **{
            key: [each[key] for each in found]
            for key in ("frequency_hz", "score", "silence_score")
        },
    }
    return (
        {
            "waveform": waveform,
            "lengths": lengths,
            "label": np.array(label, "int32"),
        },
        {
            **{k: np.array(v, "float32") for k, v in outputs.items()},
            "label": np.array(
                [model.label_names.index(each["label"]) for each in found],
                "int32",
            ),
            "valid": np.ones(len(found), bool),
        },
    )


def bytes_case(model, clips):
    """Inputs and outputs of `serving_audio_bytes`, the first clip a bad one.

    Args:
        model: an `AudioClassifier` with a `chunk_s`.
        clips: contents of WAV files of at most a chunk.
    """
    size = round(model.chunk_s * model.sample_rate_hz)
    # Shorter clips are repeated up to a chunk.
    chunks = np.stack(
        [np.resize(heard(clip, model.sample_rate_hz), size) for clip in clips]
    )
    refused = np.zeros((1, model.num_classes), "float32")
    inputs = {"audio_bytes": np.array([b"RIFF", *clips], object)}
    return inputs, {
        "scores": np.concatenate([refused, np.asarray(model(chunks))]),
        "valid": np.arange(len(clips) + 1) > 0,
        "error": np.array([1] + [0] * len(clips), "int32"),
    }


def assert_scored(cases, signatures):
    """Runs all signatures from Python.

    Args:
        cases: dict of pairs of inputs and outputs by signature.
        signatures: dict of functions, the loaded SavedModel's.
    """
    assert set(signatures) == set(cases)
    for name, (inputs, outputs) in cases.items():
        found = signatures[name](**{k: tf.constant(inputs[k]) for k in inputs})
        assert set(found) == set(outputs), name
        for key, expected in outputs.items():
            np.testing.assert_allclose(
                found[key], expected, atol=1e-5, err_msg=f"{name}: {key}"
            )


def assert_served(folder, cases, signatures, scratch):
    """Runs all signatures from Python and, where it can be built, from C++.

    Args:
        folder: of the SavedModel's version.
        cases: as `assert_scored` takes them.
        signatures: likewise.
        scratch: folder for the cases of the runner.
    """
    assert_scored(cases, signatures)
    for name, (inputs, outputs) in cases.items():
        write_case(scratch / "cases" / name, name, inputs, outputs)
    status, printed = run("check", folder, scratch / "cases")
    assert status == 0, printed
    assert f"{len(cases)} cases, 0 failed, 0 signatures" in printed, printed


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(build(sys.argv[1]))
