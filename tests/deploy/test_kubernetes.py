"""The Kubernetes manifests: their schemas, and what must hold of them besides."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
import yaml

from ldfi.experiments.cluster.config import Config, is_secret, variable
from tests.deploy.programs import DEPLOY

pytestmark = pytest.mark.servers

FOLDER = DEPLOY / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
FILES: list[str] = KUSTOMIZATION["resources"]
Document = dict[str, Any]


def load(name: str, kind: str = "") -> Document:
    documents: list[Document] = list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))
    return next(each for each in documents if not kind or each["kind"] == kind)


@pytest.fixture(params=["api", "scheduler", "ingest"])
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def pod(role: str) -> Document:
    template: Document = load(role, "Deployment")["spec"]["template"]
    return template


def test_every_manifest_is_applied() -> None:
    there = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(FILES) == there


@pytest.mark.parametrize("version", ["1.30", "1.34"])
@pytest.mark.parametrize("file", FILES)
def test_each_fits_its_schema(file: str, version: str) -> None:
    for document in yaml.safe_load_all((FOLDER / file).read_text()):
        kubernetes_validate.validate(document, version, strict=True)


def test_the_schema_would_find_a_misspelling() -> None:
    wrong = load("api", "Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["resource"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.30", strict=True)


def test_the_pod_may_do_nothing_that_it_need_not(pod: Document) -> None:
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert spec["automountServiceAccountToken"] is False
    assert load("serviceaccount")["automountServiceAccountToken"] is False
    assert spec["serviceAccountName"] == load("serviceaccount")["metadata"]["name"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"requests", "limits"} <= set(container["resources"])


def test_the_environment_is_options_that_there_are(pod: Document) -> None:
    assert pod["spec"]["enableServiceLinks"] is False  # LDFI_PORT=tcp://… would be an error
    names = set(load("configmap")["data"])
    options = {variable(name) for name in Config.model_fields}
    secrets = {variable(name) + "_FILE" for name in Config.model_fields if is_secret(name)}
    assert names <= options | secrets | {"FORWARDED_ALLOW_IPS"}  # that one is uvicorn's
    assert not names & {variable(name) for name in Config.model_fields if is_secret(name)}


def test_every_secret_is_mounted_where_the_environment_says(pod: Document) -> None:
    volume = next(v for v in pod["spec"]["volumes"] if "secret" in v)
    mount = next(
        m for m in pod["spec"]["containers"][0]["volumeMounts"] if m["name"] == volume["name"]
    )
    mounted = {f"{mount['mountPath']}/{item['path']}" for item in volume["secret"]["items"]}
    data = load("configmap")["data"]
    assert {path for name, path in data.items() if name.endswith("_FILE")} == mounted


def test_probes_and_ports_meet(pod: Document) -> None:
    container = pod["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe, path in (
        ("startupProbe", "/readyz"),
        ("readinessProbe", "/readyz"),
        ("livenessProbe", "/healthz"),
    ):
        assert container[probe]["httpGet"]["path"] == path
        assert container[probe]["httpGet"]["port"] in ports
    assert load("api", "Service")["spec"]["ports"][0]["targetPort"] in ports
    assert int(load("configmap")["data"]["LDFI_PORT"]) == ports["http"]


def test_spans_come_in_over_grpc_where_they_do_over_http(pod: Document, role: str) -> None:
    ports = {each["name"]: each["containerPort"] for each in pod["spec"]["containers"][0]["ports"]}
    port = int(load("configmap")["data"]["LDFI_GRPC_PORT"])
    assert ports.get("otlp-grpc") == (None if role == "ingest" else port)
    if role == "api":
        served = {each["name"]: each for each in load("api", "Service")["spec"]["ports"]}
        assert served["otlp-grpc"] == {"name": "otlp-grpc", "port": port, "targetPort": "otlp-grpc"}


def test_the_door_for_halting_is_open_where_it_is_served(pod: Document, role: str) -> None:
    ports = {each["name"]: each["containerPort"] for each in pod["spec"]["containers"][0]["ports"]}
    halt = int(load("configmap")["data"]["LDFI_HALT_PORT"])
    assert ports.get("halt") == (None if role == "ingest" else halt)
    if role == "api":
        served = {each["name"]: each for each in load("api", "Service")["spec"]["ports"]}
        assert served["halt"] == {"name": "halt", "port": halt, "targetPort": "halt"}


def test_only_who_may_halt_reaches_the_door_for_it() -> None:
    """It cannot tell who knocks, so whoever reaches it can keep others out."""
    data = load("configmap")["data"]
    doors = {
        int(data["LDFI_PORT"]): "ldfi.dev/client",
        int(data["LDFI_GRPC_PORT"]): "ldfi.dev/client",
        int(data["LDFI_HALT_PORT"]): "ldfi.dev/halt",
    }
    open_to: dict[int, list[Document]] = {}
    for rule in load("networkpolicy")["spec"]["ingress"]:
        for port in rule["ports"]:
            open_to.setdefault(port["port"], []).extend(rule["from"])
    assert open_to.keys() == doors.keys()
    ours = {"app.kubernetes.io/name": "ldfi"}
    for port, label in doors.items():
        for peer in open_to[port]:
            labels = [each["matchLabels"] for each in peer.values()]
            assert {label: "true"} in labels or (label == "ldfi.dev/client" and ours in labels)
            assert label != "ldfi.dev/halt" or "podSelector" in peer, "a whole namespace"


def test_every_selector_meets_the_pod_and_kustomize_changes_none(pod: Document, role: str) -> None:
    labels = pod["metadata"]["labels"].items()
    policy = load("networkpolicy")["spec"]
    selectors = [
        load(role, "Deployment")["spec"]["selector"]["matchLabels"],
        load(role, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        policy["podSelector"]["matchLabels"],
        policy["ingress"][0]["from"][-1]["podSelector"]["matchLabels"],  # each other
        policy["egress"][0]["to"][0]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels for selector in selectors)
    served = load("api", "Service")["spec"]["selector"].items() <= labels
    assert served == (role == "api")
    for added in KUSTOMIZATION["labels"]:
        assert not added.get("includeSelectors"), "it would narrow whom the NetworkPolicy lets in"


def test_each_runs_its_role_and_two_of_each(pod: Document, role: str) -> None:
    assert pod["spec"]["containers"][0]["args"] == ["ldfi", "serve", "--role", role]
    assert load(role, "Deployment")["spec"]["replicas"] == 2


def test_a_leader_says_where_it_is() -> None:
    pod: Document = load("scheduler", "Deployment")["spec"]["template"]
    given = {each["name"]: each for each in pod["spec"]["containers"][0]["env"]}
    assert given["LDFI_ADVERTISE_URL"]["value"] == "http://$(POD_IP):8600"
    assert given["POD_IP"]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    assert "LDFI_ADVERTISE_URL" in {variable(name) for name in Config.model_fields}
