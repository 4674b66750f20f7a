"""`PredictionService.Predict` over a loaded SavedModel, in this process.

For tests of our client: messages, statuses and deadlines are those of
tensorflow-serving-api and grpc, the server behind them is ours. It says
nothing of TensorFlow Serving itself.
"""

import concurrent.futures

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
)

from serving import served


class Predictions(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers for one model.

    Args:
        model: `served.Served`, or what else has its `run`.
        name: str, the model's name.
    """

    def __init__(self, model, name):
        self.model = model
        self.name = name

    def Predict(self, request, context):
        if request.model_spec.name != self.name:
            context.abort(grpc.StatusCode.NOT_FOUND, "Servable not found")
        inputs = {
            name: tf.make_ndarray(tensor)
            for name, tensor in request.inputs.items()
        }
        signature = request.model_spec.signature_name or "serving_default"
        try:
            outputs = self.model.run(signature, inputs)
        except served.BadRequest as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except served.Overloaded as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        response = predict_pb2.PredictResponse()
        for name, value in outputs.items():
            response.outputs[name].CopyFrom(
                tf.make_tensor_proto(np.asarray(value))
            )
        return response


class PredictionService(Predictions):
    """Answers after the failures that a test asks for.

    Args:
        model, name: as `Predictions` takes them.

    Attributes:
        failures: list of `grpc.StatusCode`; each call takes the first.
        words: str, what a failure says.
        answers: list of `PredictResponse`; each call takes the first.
        requests: list of the requests that came.
    """

    def __init__(self, model, name):
        super().__init__(model, name)
        self.failures = []
        self.words = "as the test asked"
        self.answers = []
        self.requests = []

    def Predict(self, request, context):
        self.requests.append(request)
        if self.failures:
            context.abort(self.failures.pop(0), self.words)
        if self.answers:
            return self.answers.pop(0)
        return super().Predict(request, context)


def start(service, port=0, threads=2):
    """Serves on loopback.

    Args:
        service: `Predictions`.
        port: int, 0 for a free one.
        threads: int, the requests that are answered at a time. As many again
            wait; the others are told `RESOURCE_EXHAUSTED`, as by the C++
            server that has no free thread.

    Returns:
        Pair of the `grpc.Server` and its port.
    """
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(threads),
        maximum_concurrent_rpcs=2 * threads,
        # Else a second server would get a part of the first one's requests.
        options=[("grpc.so_reuseport", 0)],
    )
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        service, server
    )
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, port
