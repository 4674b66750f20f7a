"""Time and memory of a model beside one with full attention."""

import sys

from audio_tf import files
from audio_tf.runs import rows


def measure_costs(file, asked):
    """Measures time and memory of a model, in a process of its own.

    A training step comes first and alone, for the memory; then steps and
    inference of the model and of `full` attention take turns. Tables of
    trained attentions are folded for inference.

    Args:
        file: path of the JSON file that is written.
        asked: dict of the `model` and of that with `full` attention, `.keras`
            files of runs; `batch_size` of training and `repeats`.
    """
    import keras
    import numpy as np

    from audio_tf import attention, models  # noqa: F401
    from audio_tf.audio.scoring import timed_samples

    rng, paths = np.random.default_rng(0), {"model": asked["model"]}
    if asked["full"] != asked["model"]:
        paths["full"] = asked["full"]
    # Of the libraries, not of the model.
    keras.ops.matmul(np.ones((64, 64)), np.ones((64, 64)))
    before = peak_bytes()
    loaded = {"model": keras.saving.load_model(paths["model"])}
    model = loaded["model"]
    shape = asked["batch_size"], timed_samples(model)
    waveform = 0.1 * rng.standard_normal(shape)
    targets = np.eye(model.num_classes)[
        rng.integers(0, model.num_classes, len(waveform))
    ]
    for _ in range(2):
        model.train_on_batch(waveform, targets)
    memory = peak_bytes() - before
    for name in paths.keys() - loaded.keys():
        loaded[name] = keras.saving.load_model(paths[name])
    training_s = rows.in_turn(
        {
            name: lambda each=each: each.train_on_batch(waveform, targets)
            for name, each in loaded.items()
        },
        asked["repeats"],
    )
    found = {
        "parameters": model.backbone.count_params(),
        "multiply_adds": multiply_adds(model.backbone, waveform.shape[1]),
        "paper_cost": paper_cost(model.backbone, waveform.shape[1]),
        "peak_mib": memory / 2**20,
    }
    for each in loaded.values():
        attention.fold(each)
    inference_s = rows.in_turn(
        {
            name: lambda each=each: each.predict_on_batch(waveform[:1])
            for name, each in loaded.items()
        },
        asked["repeats"],
    )
    for name, seconds in (
        ("inference", inference_s),
        ("training", training_s),
    ):
        found[f"{name}_s"] = seconds["model"]
        base = seconds.get("full", seconds["model"])
        found[f"{name}_ratio"] = seconds["model"] / base
    files.write_json(file, {"asked": asked, **found})


def peak_bytes():
    """Returns the largest memory so far, of an accelerator where there is one.

    It is the backend that knows: TensorFlow, which reads the sound for JAX,
    sees no GPU there.
    """
    import resource

    import keras

    found = {"jax": peak_on_jax, "tensorflow": peak_on_tensorflow}
    peak = found.get(keras.backend.backend(), lambda: None)()
    if peak is not None:
        return peak
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts in bytes, Linux in KiB.
    return peak if sys.platform == "darwin" else peak * 2**10


def peak_on_jax():
    """Returns the largest memory of JAX' first device, `None` of a CPU."""
    import jax

    told = jax.local_devices()[0].memory_stats()
    return told and told.get("peak_bytes_in_use")


def peak_on_tensorflow():
    """Returns the largest memory of TensorFlow's first GPU, or `None`."""
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        return None
    return tf.config.experimental.get_memory_info("GPU:0")["peak"]


def multiply_adds(backbone, length):
    """Counts the multiply-adds of all attentions of a backbone for one input.

    Args:
        backbone: `AudioBackbone` that takes waveforms.
        length: int, samples.
    """
    return sum(
        block.attention.cost(*shape).multiply_adds
        for block, shape in attended(backbone, length)
    )


def paper_cost(backbone, length):
    """Sums the "Theoretical Time" of arXiv 2006.05174 over all attentions.

    Args:
        backbone, length: as `multiply_adds` takes them.

    Returns:
        float, or `None` if that paper does not have one of the attentions.
    """
    from audio_tf.attention import costs

    found = [
        costs.paper_cost(
            block.attention_name,
            *shape,
            block.attention.num_heads,
            **block.attention.paper_sizes,
        )
        for block, shape in attended(backbone, length)
    ]
    return None if None in found else sum(found)


def attended(backbone, length):
    """Lists the blocks of a backbone and what comes to them for one input.

    Args:
        backbone, length: as `multiply_adds` takes them.

    Returns:
        List of pairs of a `TransformerBlock` and a pair of ints, the frames
        that come to it and their features.
    """
    import numpy as np

    # Not from symbolic inputs: a layer need not know its frames beforehand.
    inputs = backbone.block_inputs(
        {
            "waveform": np.zeros((1, length), "float32"),
            "lengths": np.array([length], "int32"),
        }
    )
    return [
        (block, x.shape[1:])
        for block, (x, _) in zip(backbone.blocks, inputs, strict=True)
    ]
