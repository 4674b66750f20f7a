"""Requests that TensorFlow Serving replays while it loads a model."""

import io
import pathlib

import numpy as np
import soundfile
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

REQUESTS = pathlib.Path("assets.extra", "tf_serving_warmup_requests")
# Of bytes, which a server can merge; a waveform is much larger.
BATCH_SIZES = {"serving_audio_bytes": (1, 8)}


def example_inputs(sample_rate_hz, seconds, batch_size):
    """Makes inputs of each signature from quiet noise.

    Returns:
        Dict by signature of dicts of arrays by input.
    """
    samples = max(1, round(seconds * sample_rate_hz))
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.standard_normal((batch_size, samples), np.float32)
    files = []
    for clip in noise:
        file = io.BytesIO()
        soundfile.write(file, clip, sample_rate_hz, "PCM_16", format="WAV")
        files.append(file.getvalue())
    waveform = {
        "waveform": noise,
        "lengths": np.full(batch_size, samples, np.int32),
    }
    return {
        "serving_default": waveform,
        "serving_audio_bytes": {"audio_bytes": np.array(files, object)},
        "embed": waveform,
        "frames": waveform,
        "stream": {
            "waveform": noise,
            "last": np.zeros(batch_size, bool),
            "state": np.zeros((batch_size, 0), np.float32),
        },
        "explain": {**waveform, "label": np.full(batch_size, -1, np.int32)},
    }


def write_requests(folder, model_name, signatures, sample_rate_hz, seconds):
    """Writes a record for each signature and batch size.

    The first call of a signature takes a server up to a second. It replays
    these before it says that it is ready.

    Args:
        folder: the folder of a SavedModel's version.
        model_name: str, the name that the server gives the model.
        signatures: iterable of the names of the signatures.
        sample_rate_hz: int, the rate of the model.
        seconds: float, the length of the clips.
    """
    path = pathlib.Path(folder, REQUESTS)
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for name in signatures:
            for batch_size in BATCH_SIZES.get(name, (1,)):
                examples = example_inputs(sample_rate_hz, seconds, batch_size)
                request = predict_pb2.PredictRequest()
                request.model_spec.name = model_name
                request.model_spec.signature_name = name
                for key, value in examples[name].items():
                    request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
                log = prediction_log_pb2.PredictionLog()
                log.predict_log.request.CopyFrom(request)
                writer.write(log.SerializeToString())
