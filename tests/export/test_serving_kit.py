"""The files of `serving/`: they parse, and they agree with each other.

The official server was not run. `models.config` is parsed by its own proto;
those of the other two are in no package, so their fields are stated here as
they are in tensorflow/serving.
"""

import pathlib
import re

import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    text_format,
    wrappers_pb2,
)
from tensorflow_serving.config import model_server_config_pb2

from audio_tf.client import transport

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


def read(name):
    return (SERVING / name).read_text()


def compose():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(read("docker-compose.yml"))["services"]["serving"]


def manifests():
    yaml = pytest.importorskip("yaml")
    documents = yaml.safe_load_all(read("kubernetes.yaml"))
    return {document["kind"]: document for document in documents}


def pod():
    return manifests()["Deployment"]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def model():
    """The one model of `models.config`."""
    config = text_format.Parse(
        read("models.config"),
        model_server_config_pb2.ModelServerConfig(),
    )
    (model,) = config.model_config_list.config
    return model


def test_the_model_is_the_one_that_the_client_asks_for(model):
    assert model.name == transport.MODEL_NAME
    assert model.model_platform == "tensorflow"
    assert model.base_path == f"/models/{model.name}"
    assert model.model_version_policy.latest.num_versions == 1


def test_batches_of_waveforms_are_padded():
    batching = parse(read("batching_parameters.txt"), "BatchingParameters")
    assert batching.pad_variable_length_inputs
    assert batching.max_batch_size.value == 32
    assert not batching.allowed_batch_sizes
    assert batching.num_batch_threads.value == compose()["cpus"]


def test_a_wrong_field_is_found():
    with pytest.raises(text_format.ParseError, match="max_batch_sizes"):
        parse("max_batch_sizes { value: 1 }", "BatchingParameters")


def test_docker_and_kubernetes_start_the_same_server():
    (container,) = pod()["containers"]
    assert container["args"] == compose()["command"]
    assert container["image"] == compose()["image"]
    assert re.fullmatch(r"tensorflow/serving:\d+\.\d+\.\d+", container["image"])


def test_flags_name_files_that_are_mounted():
    files = set()
    for flag in compose()["command"]:
        name, value = flag.removeprefix("--").split("=")
        if name.endswith("_file"):
            folder, _, file = value.rpartition("/")
            assert folder == "/config"
            assert (SERVING / file).is_file(), file
            files.add(file)
    head = read("kubernetes.yaml").split("apiVersion")[0]
    assert files == set(re.findall(r"--from-file=serving/(\S+)", head))
    assert len(files) == 3


def test_models_and_config_are_mounted_where_they_are_looked_for(model):
    targets = {mount.split(":")[-2] for mount in compose()["volumes"]}
    (container,) = pod()["containers"]
    mounts = {
        one["mountPath"]: one["name"] for one in container["volumeMounts"]
    }
    assert targets == set(mounts) == {"/models", "/config"}
    assert model.base_path.startswith("/models/")
    volumes = {one["name"]: one for one in pod()["volumes"]}
    assert set(volumes) == set(mounts.values())
    head = read("kubernetes.yaml").split("apiVersion")[0]
    named = volumes[mounts["/config"]]["configMap"]["name"]
    assert f"create configmap {named} " in head
    claim = volumes[mounts["/models"]]["persistentVolumeClaim"]["claimName"]
    assert f"`{claim}`" in head


def test_probes_ask_the_rest_port_for_the_model(model):
    (container,) = pod()["containers"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports == {"grpc": 8500, "rest": 8501}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        request = container[probe]["httpGet"]
        assert request["port"] == "rest"
        path = f"/v1/models/{model.name}"
        assert request["path"] in (path, f"{path}/metadata")
    check = compose()["healthcheck"]["test"][-1]
    assert f"GET /v1/models/{model.name}/metadata " in check
    assert "/dev/tcp/127.0.0.1/8501" in check
    assert set(container["resources"]) == {"requests", "limits"}


def test_metrics_are_scraped_where_they_are_written():
    metrics = parse(
        read("monitoring.config"), "MonitoringConfig"
    ).prometheus_config
    template = manifests()["Deployment"]["spec"]["template"]
    annotations = template["metadata"]["annotations"]
    assert metrics.enable
    assert annotations["prometheus.io/path"] == metrics.path
    assert annotations["prometheus.io/port"] == "8501"


def test_the_service_finds_the_pods():
    deployment, service = (manifests()[k] for k in ("Deployment", "Service"))
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    ports = {one["name"]: one["port"] for one in service["spec"]["ports"]}
    assert ports == {"grpc": 8500, "rest": 8501}


def test_docker_listens_on_loopback_alone():
    assert compose()["ports"] == [
        "127.0.0.1:8500:8500",
        "127.0.0.1:8501:8501",
    ]
