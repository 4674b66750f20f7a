"""A loaded SavedModel that takes and gives what TensorFlow Serving does.

Stands behind the servers of this folder. The decoding of JSON below is ours,
written after TensorFlow Serving's documentation: a test that passes here says
that our client, our export and the transport fit together, not that
TensorFlow Serving parses a request in the same way.
"""

import base64
import binascii
import json
import pathlib

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

SIGNATURE = "serving_audio_bytes"


class BadRequest(ValueError):
    """What TensorFlow Serving answers with status 400, INVALID_ARGUMENT."""


class Overloaded(RuntimeError):
    """What TensorFlow Serving answers with status 503, UNAVAILABLE."""


class Served:
    """The signatures of a SavedModel.

    Args:
        folder: of the version, with `saved_model.pb` in it.
        batching: `BatchingParameters` by which requests of
            `serving_audio_bytes` are merged, or `None`. TensorFlow's operation
            has the scheduler of batches that TensorFlow Serving has.
    """

    def __init__(self, folder, batching=None):
        saved = saved_model_pb2.SavedModel()
        saved.ParseFromString(
            pathlib.Path(folder, "saved_model.pb").read_bytes()
        )
        self.definitions = saved.meta_graphs[0].signature_def
        self._module = tf.saved_model.load(str(folder))
        self.functions = dict(self._module.signatures)
        if batching:
            self.functions[SIGNATURE] = merged(
                self.functions[SIGNATURE], batching, pathlib.Path(folder).name
            )

    def definition(self, name):
        """The `SignatureDef` of a name."""
        if name not in self.functions:
            raise BadRequest(
                f'Serving signature name: "{name}" not found in signature def'
            )
        return self.definitions[name]

    def run(self, name, inputs):
        """Runs a signature; an input left out takes its default.

        Args:
            name: of the signature.
            inputs: dict of tensors or arrays.

        Returns:
            Dict of arrays by the names of the outputs.

        Raises:
            BadRequest: if inputs are missing, unknown or of a wrong shape.
            Overloaded: if the queue of batches is full.
        """
        definition = self.definition(name)
        given = {
            key: tf.make_ndarray(default)
            for key, default in definition.defaults.items()
        }
        given.update(inputs)
        if set(given) != set(definition.inputs):
            raise BadRequest(
                "input size does not match signature: "
                f"{sorted(inputs)} against {sorted(definition.inputs)}"
            )
        try:
            tensors = {
                key: tf.constant(
                    value, tf.as_dtype(definition.inputs[key].dtype)
                )
                for key, value in given.items()
            }
            outputs = self.functions[name](**tensors)
        except tf.errors.UnavailableError as error:
            raise Overloaded(str(error)) from error
        except (ValueError, TypeError, tf.errors.InvalidArgumentError) as error:
            raise BadRequest(str(error)) from error
        return {key: value.numpy() for key, value in outputs.items()}

    def answer(self, request):
        """Answers a request of the REST API.

        Args:
            request: what the JSON body holds, decoded.

        Returns:
            What the JSON of the answer holds.

        Raises:
            BadRequest: if it is none.
        """
        if not isinstance(request, dict):
            raise BadRequest("the request is no JSON object")
        name = request.get("signature_name") or "serving_default"
        if ("instances" in request) == ("inputs" in request):
            raise BadRequest('one of "instances" and "inputs" is wanted')
        if "inputs" in request:
            outputs = self.run(name, self.columns(name, request["inputs"]))
            lists = {key: value.tolist() for key, value in outputs.items()}
            only = len(lists) == 1
            return {"outputs": lists.popitem()[1] if only else lists}
        outputs = self.run(name, self.rows(name, request["instances"]))
        if len(outputs) == 1:
            return {"predictions": outputs.popitem()[1].tolist()}
        columns = [value.tolist() for value in outputs.values()]
        return {
            "predictions": [
                dict(zip(outputs, row, strict=True))
                for row in zip(*columns, strict=True)
            ]
        }

    def columns(self, name, inputs):
        """Inputs by name, from `inputs` of a request."""
        if not isinstance(inputs, dict):
            inputs = {self.only_input(name): inputs}
        return {key: decode(value) for key, value in inputs.items()}

    def rows(self, name, instances):
        """Inputs by name, from `instances` of a request."""
        if not isinstance(instances, list) or not instances:
            raise BadRequest('"instances" is no list, or empty')
        names = set(self.definition(name).inputs)
        if not all(
            isinstance(row, dict) and set(row) <= names for row in instances
        ):
            key = self.only_input(name)
            instances = [{key: row} for row in instances]
        if len({frozenset(row) for row in instances}) != 1:
            raise BadRequest("rows have different inputs")
        return {
            key: [decode(row[key]) for row in instances] for key in instances[0]
        }

    def only_input(self, name):
        """The input that has no default, if there is one."""
        definition = self.definition(name)
        names = set(definition.inputs) - set(definition.defaults)
        if len(names) != 1:
            raise BadRequest(f"name the inputs: {sorted(names)}")
        return names.pop()


def merged(signature, batching, version):
    """A signature whose concurrent calls run as one.

    Args:
        signature: function of `audio_bytes`.
        batching: `BatchingParameters`.
        version: str. Queues of one name would be shared by all versions, and
            the first would answer for the others.
    """
    names = sorted(signature.structured_outputs)

    @tf.nondifferentiable_batch_function(
        num_batch_threads=batching.num_batch_threads.value,
        max_batch_size=batching.max_batch_size.value,
        batch_timeout_micros=batching.batch_timeout_micros.value,
        max_enqueued_batches=batching.max_enqueued_batches.value,
        enable_large_batch_splitting=False,
        autograph=False,
    )
    def run(audio_bytes):
        outputs = signature(audio_bytes=audio_bytes)
        return [outputs[name] for name in names]

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )
    def batch(audio_bytes):
        with tf.name_scope(f"version_{version}"):
            return run(audio_bytes)

    return lambda audio_bytes: dict(zip(names, batch(audio_bytes), strict=True))


class Constant(Served):
    """Answers alike for every clip, for tests of all but the scores."""

    def __init__(self):
        pass

    def definition(self, name):
        if name != SIGNATURE:
            raise BadRequest(
                f'Serving signature name: "{name}" not found in signature def'
            )

    def columns(self, name, inputs):
        return inputs

    def run(self, name, inputs):
        self.definition(name)
        count = len(inputs["audio_bytes"])
        return {
            "scores": np.full((count, 3), 0.25, "float32"),
            "valid": np.ones(count, bool),
            "error": np.zeros(count, "int32"),
        }


def decode(value):
    """A value of JSON, with `{"b64": ...}` as bytes."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) != {"b64"}:
        raise BadRequest(f"no value. Received: {sorted(value)}")
    try:
        return base64.b64decode(value["b64"], validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadRequest(f"no base64: {error}") from error


def parse(body):
    """JSON of a request's body, bytes."""
    try:
        return json.loads(body)
    except ValueError as error:
        raise BadRequest(f"JSON Parse error: {error}") from error
