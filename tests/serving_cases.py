"""The C++ runner of SavedModels, and the cases that it checks.

    python tests/serving_cases.py FOLDER

builds the runner in FOLDER; `runner.cc` says how to call it.
"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

SOURCES = pathlib.Path(__file__).resolve().parent / "serving"
LIBRARIES = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")


def command(target):
    """What compiles the runner against the installed TensorFlow."""
    folder = tf.sysconfig.get_lib()
    return [
        "g++",
        "-O1",
        "-w",
        *tf.sysconfig.get_compile_flags(),
        str(SOURCES / "runner.cc"),
        "-o",
        str(target),
        f"-L{folder}",
        # Nothing refers to the library that registers sessions and kernels.
        "-Wl,--no-as-needed",
        *(f"-l:{name}" for name in LIBRARIES),
        f"-Wl,-rpath,{folder}",
    ]


def build(folder=None):
    """Compiles the runner unless the same one is there.

    Args:
        folder: where to; one of this user's for temporary files if `None`,
            so that workers and later runs share it.

    Returns:
        `pathlib.Path` of the program, named after its sources, TensorFlow's
        version and its place, which is compiled in.

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
    parts += [tf.__version__.encode(), " ".join(command("")).encode()]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    program = folder / f"runner-{digest}"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if program.exists():
            return program
        partial = program.with_suffix(".partial")
        done = subprocess.run(command(partial), capture_output=True, text=True)
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


def run(*arguments, timeout_s=60):
    """Exit status and all that the runner prints."""
    done = subprocess.run(
        [runner(), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
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


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(build(sys.argv[1]))
