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


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers for one model, after the failures that a test asks for.

    Args:
        model: `served.Served`.
        name: str, the model's name.

    Attributes:
        failures: list of `grpc.StatusCode`; each call takes the first.
        words: str, what a failure says.
        answers: list of `PredictResponse`; each call takes the first.
        requests: list of the requests that came.
    """

    def __init__(self, model, name):
        self.model = model
        self.name = name
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
        response = predict_pb2.PredictResponse()
        for name, value in outputs.items():
            response.outputs[name].CopyFrom(
                tf.make_tensor_proto(np.asarray(value))
            )
        return response


def start(service):
    """Serves on a free port of loopback.

    Returns:
        Pair of the `grpc.Server` and its port.
    """
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        service, server
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port
