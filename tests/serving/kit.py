"""The files of `serving/`, read as the server reads them.

Two of their protos are in no package, so their fields are stated here as they
are in tensorflow/serving.
"""

import pathlib

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    text_format,
    wrappers_pb2,
)

SERVING = pathlib.Path(__file__).resolve().parents[2] / "serving"

# session_bundle_config.proto and monitoring_config.proto.
PROTOS = """
name: "serving_kit.proto" package: "kit" syntax: "proto3"
dependency: "google/protobuf/wrappers.proto"
message_type {
  name: "BatchingParameters"
  field { name: "max_batch_size" number: 1 label: LABEL_OPTIONAL
    type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
  field { name: "batch_timeout_micros" number: 2 label: LABEL_OPTIONAL
    type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
  field { name: "max_enqueued_batches" number: 3 label: LABEL_OPTIONAL
    type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
  field { name: "num_batch_threads" number: 4 label: LABEL_OPTIONAL
    type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
  field { name: "allowed_batch_sizes" number: 6 label: LABEL_REPEATED
    type: TYPE_INT64 }
  field { name: "pad_variable_length_inputs" number: 7 label: LABEL_OPTIONAL
    type: TYPE_BOOL }
}
message_type {
  name: "PrometheusConfig"
  field { name: "enable" number: 1 label: LABEL_OPTIONAL type: TYPE_BOOL }
  field { name: "path" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING }
}
message_type {
  name: "MonitoringConfig"
  field { name: "prometheus_config" number: 1 label: LABEL_OPTIONAL
    type: TYPE_MESSAGE type_name: ".kit.PrometheusConfig" }
}
"""


def parse(text, message):
    """Text of a file of `serving/` as one of the messages above."""
    kit = text_format.Parse(PROTOS, descriptor_pb2.FileDescriptorProto())
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(kit.SerializeToString())
    descriptor = pool.FindMessageTypeByName(f"kit.{message}")
    return text_format.Parse(
        text, message_factory.GetMessageClass(descriptor)()
    )


def batching(path=SERVING / "batching_parameters.txt"):
    """The `BatchingParameters` of a file."""
    return parse(pathlib.Path(path).read_text(), "BatchingParameters")
