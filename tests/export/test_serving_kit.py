"""The files of `serving/`: they parse, and they agree with each other.

The official server was not run. `models.config` is parsed by its own proto.
"""

import re
import subprocess

import pytest
from google.protobuf import text_format
from serving.kit import SERVING, parse
from tensorflow_serving.config import model_server_config_pb2

from audio_tf.client import address
from serving import fleet, kit


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
    assert model.name == address.MODEL_NAME
    assert model.model_platform == "tensorflow"
    assert model.base_path == f"/models/{model.name}"
    assert model.model_version_policy.latest.num_versions == 1


def test_the_page_asks_for_the_versions_that_its_models_have():
    """By the file of several models and the addresses that it prints."""
    page = (SERVING.parent / "docs" / "serve.md").read_text()
    (text,) = re.findall(r"```text\n(model_config_list.*?)```", page, re.DOTALL)
    config = text_format.Parse(
        text, model_server_config_pb2.ModelServerConfig()
    )
    models = {one.name: one for one in config.model_config_list.config}
    paths = re.findall(r"`(/v1/models/[a-z][^`]*)`", page)
    assert len(models) == 2 and len(paths) == 3
    for path in paths:
        asked = address.parse_url(f"grpc://localhost{path}", None, ["grpc"])
        model = models[asked.model_name]
        versions = model.model_version_policy.specific.versions
        assert asked.version is None or asked.version in versions
        label = asked.version_label
        assert label is None or model.version_labels[label] in versions
    for name, model in models.items():
        assert model.base_path == f"/models/{name}"


def test_batches_of_waveforms_are_padded():
    batching = kit.batching()
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


# Types of Kubernetes' client by the kind of a manifest.
TYPES = {
    "Deployment": "V1Deployment",
    "Service": "V1Service",
    "HorizontalPodAutoscaler": "V2HorizontalPodAutoscaler",
    "PodDisruptionBudget": "V1PodDisruptionBudget",
}


def test_manifests_have_the_types_of_kubernetes():
    """Offline, by the client that KServe brings along."""
    models = pytest.importorskip("kubernetes.client").models
    assert set(manifests()) == set(TYPES)
    for kind, manifest in manifests().items():
        getattr(models, TYPES[kind])(**manifest)
        version = manifest["apiVersion"].rpartition("/")[2]
        assert TYPES[kind] == f"{version.upper()}{kind}"
    spoilt = manifests()["Deployment"]
    (container,) = spoilt["spec"]["template"]["spec"]["containers"]
    container["readynessProbe"] = container.pop("readinessProbe")
    container["ports"][0]["containerPort"] = "8500"
    del container["name"]
    with pytest.raises(ValueError) as caught:
        models.V1Deployment(**spoilt)
    for place in ("0.name", "0.ports.0.containerPort", "0.readynessProbe"):
        assert f"spec.template.spec.containers.{place}\n" in str(caught.value)


def test_the_autoscaler_and_the_budget_find_the_pods():
    deployment, scaler, budget = (
        manifests()[kind]
        for kind in (
            "Deployment",
            "HorizontalPodAutoscaler",
            "PodDisruptionBudget",
        )
    )
    target = scaler["spec"]["scaleTargetRef"]
    for key in ("apiVersion", "kind"):
        assert target[key] == deployment[key]
    assert target["name"] == deployment["metadata"]["name"]
    labels = deployment["spec"]["selector"]["matchLabels"]
    assert budget["spec"]["selector"]["matchLabels"] == labels
    # One of the pods that are always there may be missing.
    allowed = budget["spec"]["maxUnavailable"]
    assert 1 <= allowed < scaler["spec"]["minReplicas"]
    assert "replicas" not in deployment["spec"]
    (metric,) = scaler["spec"]["metrics"]
    (container,) = pod()["containers"]
    assert metric["resource"]["name"] in container["resources"]["requests"]


def test_a_pod_ends_after_what_it_has_taken():
    (container,) = pod()["containers"]
    (name, seconds) = container["lifecycle"]["preStop"]["exec"]["command"]
    flags = dict(flag.split("=") for flag in container["args"])
    longest_s = int(flags["--rest_api_timeout_in_ms"]) / 1e3
    grace_s = pod()["terminationGracePeriodSeconds"]
    assert name == "sleep" and grace_s > int(seconds) + longest_s


def test_the_queue_refuses_before_threads_are_short():
    """Else requests wait for a thread, where nothing refuses them."""
    batching = kit.batching()
    batches = (
        batching.max_enqueued_batches.value + batching.num_batch_threads.value
    )
    clips = batches * batching.max_batch_size.value
    flags = dict(flag.split("=") for flag in compose()["command"])
    for name in ("--rest_api_num_threads", "--grpc_max_threads"):
        assert int(flags[name]) > clips
    assert fleet.BATCHING_THREADS == int(flags["--rest_api_num_threads"])


@pytest.mark.skipif(not fleet.has_nginx(), reason="no nginx")
def test_nginx_takes_its_file(tmp_path):
    text = fleet.proxy_config(
        read("nginx.conf"), [18, 19], [20], 21, 22, tmp_path / "pid"
    )
    path = tmp_path / "nginx.conf"
    path.write_text(text)
    done = subprocess.run(
        [fleet.NGINX, "-t", "-c", path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for port, count in {18: 1, 19: 1, 20: 1, 21: 1, 22: 1, 850: 0}.items():
        assert len(re.findall(rf"127\.0\.0\.1:{port}", text)) == count
    path.write_text(text.replace("least_conn", "least_con"))
    done = subprocess.run([fleet.NGINX, "-t", "-c", path], capture_output=True)
    assert done.returncode != 0


def test_docker_listens_on_loopback_alone():
    assert compose()["ports"] == [
        "127.0.0.1:8500:8500",
        "127.0.0.1:8501:8501",
    ]
