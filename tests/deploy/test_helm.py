"""The Helm chart: rendered by Helm itself, and the same as the plain manifests."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from deploy.stack.collector import installed
from ldfi.experiments.cluster.config import Config, is_secret, variable
from tests.deploy.programs import DEPLOY, collector, helm

pytestmark = pytest.mark.servers

CHART = DEPLOY / "helm" / "ldfi"
ROOT = DEPLOY.parent
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
ALL: Mapping[str, Any] = {
    "roles": {
        "api": {"autoscaling": {"enabled": True}},
        "ingest": {"autoscaling": {"enabled": True, "maxReplicas": 24}},
    },
    "config": {
        "LDFI_KAFKA_PARTITIONS": 24,
        "LDFI_MEMBERS_PER_DAY": 1_000_000,
        "LDFI_KAFKA_PROTOCOL": "SASL_SSL",
    },
    "secretKeys": {
        "options": ["database_url", "tokens", "member_key", "kafka_password"],
        "files": ["ca.pem"],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {
        "egress": [
            {"cidrs": ["10.20.0.0/16", "2001:db8::/32"], "ports": [9096, 9098]},
            {"cidrs": ["10.30.1.5/32"], "ports": [5432]},
        ]
    },
    "collector": {
        "jaegerEndpoint": "jaeger:4317",
        "overlay": {"exporters": {"kafka": {"tls": {"insecure": False}}}},
        "queue": {"claim": "spans"},
        "egress": [{"cidrs": ["10.20.0.0/16"], "ports": [9096]}],
    },
}
DEFAULT_QUEUE = re.findall(
    r"QUEUE_DIRECTORY:-([^}]+)\}", (DEPLOY / "collector" / "collector.yaml").read_text()
)[0]
Objects = dict[tuple[str, str], dict[str, Any]]


def render(tmp_path: Path, values: Mapping[str, Any], *words: str) -> tuple[Objects, str]:
    """What Helm makes of values, by kind and name; or what it says against them."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(dict(values)))
    done = subprocess.run(
        [helm(), "template", "ldfi", CHART, "--kube-version=1.34.0", "--values", file, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    found = [each for each in yaml.safe_load_all(done.stdout) if each]
    named = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(named) == len(found)
    assert done.returncode == 0 or not named
    return named, done.stderr


def plain() -> Objects:
    files = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text())["resources"]
    found = [
        each
        for file in files
        for each in yaml.safe_load_all((DEPLOY / "kubernetes" / file).read_text())
    ]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def test_by_default_it_is_what_the_plain_manifests_are(tmp_path: Path) -> None:
    rendered, error = render(tmp_path, {})
    wanted = plain()
    ours = {at: each for at, each in rendered.items() if "collector" not in at[1]}
    assert ours.keys() == wanted.keys(), error
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    for at, each in ours.items():
        each["metadata"].pop("labels")
        if at[0] == "Deployment":
            template = each["spec"]["template"]
            template["metadata"].pop("annotations")
            (container,) = template["spec"]["containers"]
            assert container.pop("imagePullPolicy") == "IfNotPresent"
            assert container["image"] == f"ldfi:{version}"
            container["image"] = "ldfi"  # kustomize puts in the rest
        assert each == wanted[at], at


@pytest.mark.parametrize("version", ["1.30", "1.34"])
@pytest.mark.parametrize("values", [{}, ALL], ids=["default", "all"])
def test_what_comes_of_it_fits_the_schemas(
    tmp_path: Path, values: Mapping[str, Any], version: str
) -> None:
    rendered, error = render(tmp_path, values)
    assert rendered, error
    for (kind, _), each in rendered.items():
        if kind != "ServiceMonitor":  # a resource of the Prometheus Operator's own
            kubernetes_validate.validate(each, version, strict=True)


def test_everything_can_be_had(tmp_path: Path) -> None:
    rendered, error = render(tmp_path, ALL)
    assert rendered, error
    for role, most in (("api", 6), ("ingest", 24)):
        scaler = rendered["HorizontalPodAutoscaler", f"ldfi-{role}"]["spec"]
        deployment = rendered["Deployment", f"ldfi-{role}"]
        assert scaler["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
        assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, most)
        assert "replicas" not in deployment["spec"], "each upgrade would undo the scaling"
    assert rendered["Deployment", "ldfi-scheduler"]["spec"]["replicas"] == 2
    assert ("HorizontalPodAutoscaler", "ldfi-scheduler") not in rendered
    # Secrets: one list says what is mounted and where the service looks
    spec = rendered["Deployment", "ldfi-ingest"]["spec"]["template"]["spec"]
    mounted = {each["path"] for each in spec["volumes"][0]["secret"]["items"]}
    data = rendered["ConfigMap", "ldfi"]["data"]
    named = {value for name, value in data.items() if name.endswith("_FILE")}
    assert named == {f"/run/secrets/ldfi/{each}" for each in mounted - {"ca.pem"}}
    assert data["LDFI_KAFKA_PASSWORD_FILE"] == "/run/secrets/ldfi/kafka_password"
    assert data["LDFI_KAFKA_PARTITIONS"] == "24"
    assert data["LDFI_MEMBERS_PER_DAY"] == "1000000"  # a number is 1e+06 to Helm
    options = {variable(name) for name in Config.model_fields}
    files = {variable(name) + "_FILE" for name in Config.model_fields if is_secret(name)}
    assert data.keys() <= options | files | {"FORWARDED_ALLOW_IPS"}


def test_prometheus_finds_each_pod(tmp_path: Path) -> None:
    rendered, _ = render(tmp_path, ALL)
    monitor, service = rendered["ServiceMonitor", "ldfi"], rendered["Service", "ldfi-metrics"]
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert [
        at[1]
        for at, each in rendered.items()
        if at[0] == "Service" and wanted <= each["metadata"]["labels"].items()
    ] == ["ldfi-metrics"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    assert endpoint["authorization"]["credentials"] == {"name": "ldfi-metrics", "key": "token"}
    for role in ("api", "scheduler", "ingest"):
        labels = rendered["Deployment", f"ldfi-{role}"]["spec"]["template"]["metadata"]["labels"]
        assert service["spec"]["selector"].items() <= labels.items()
    traced = rendered["Deployment", "ldfi-collector"]["spec"]["template"]["metadata"]["labels"]
    assert not service["spec"]["selector"].items() <= traced.items()


@pytest.mark.parametrize("name", ["ldfi", "ldfi-collector"])
def test_out_go_only_the_addresses_and_ports_that_are_given(tmp_path: Path, name: str) -> None:
    given = ALL["networkPolicy" if name == "ldfi" else "collector"]["egress"]
    egress = render(tmp_path, ALL)[0]["NetworkPolicy", name]["spec"]["egress"]
    outside = [
        (
            [peer["ipBlock"]["cidr"] for peer in rule["to"]],
            [each["port"] for each in rule["ports"]],
        )
        for rule in egress
        if not any("podSelector" in peer for peer in rule.get("to", ()))
    ]
    assert outside == [(each["cidrs"], each["ports"]) for each in given]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"replicas": 3}, "replicas"),
        ({"config": {"LDFI_TOKENS": "admin:hush"}}, "LDFI_TOKENS"),
        ({"config": {"lease": 3}}, "lease"),
        ({"roles": {"scheduler": {"autoscaling": {"enabled": True}}}}, "autoscaling"),
        ({"roles": {"ingest": {"replicas": 13}}}, "13 ingest workers for 12 partitions"),
        ({"networkPolicy": {"egress": [{"cidrs": ["kafka"], "ports": [1]}]}}, "kafka"),
        ({"existingSecret": ""}, "existingSecret"),
    ],
)
def test_what_cannot_be_right_is_refused(
    tmp_path: Path, values: Mapping[str, Any], said: str
) -> None:
    rendered, error = render(tmp_path, values)
    assert not rendered
    assert said in error


def test_no_secret_may_stand_in_the_configuration() -> None:
    secrets = {variable(name) for name in Config.model_fields if is_secret(name)}
    refused = set(SCHEMA["properties"]["config"]["propertyNames"]["not"]["enum"])
    assert secrets <= refused
    assert refused - secrets == {
        *(
            "LDFI_HOST",
            "LDFI_PORT",
            "LDFI_GRPC_PORT",
            "LDFI_HALT_PORT",
            "LDFI_ADVERTISE_URL",
        ),  # the chart's own
        "FIT_KEYS",
    }


@pytest.mark.parametrize("values", [{}, ALL], ids=["default", "all"])
def test_the_collector_takes_its_configuration(tmp_path: Path, values: Mapping[str, Any]) -> None:
    collector()
    rendered, _ = render(tmp_path, values)
    data = rendered["ConfigMap", "ldfi-collector"]["data"]
    words = []
    for name in ("collector.yaml", "overlay.yaml"):
        (tmp_path / name).write_text(data[name])
        words += ["--config", str(tmp_path / name)]
    spec = rendered["Deployment", "ldfi-collector"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["args"] == ["--config", "/etc/ldfi/collector.yaml", *container["args"][2:]]
    given = {each["name"]: each["value"] for each in container["env"]}
    done = subprocess.run(
        [installed(), "validate", *words], capture_output=True, text=True, check=False, env=given
    )
    assert done.returncode == 0, done.stderr
    assert ("otlp_grpc/jaeger" in data["overlay.yaml"]) == (values is ALL)


@pytest.mark.parametrize(
    ("values", "disk"),
    [
        ({}, {"emptyDir": {"sizeLimit": "2Gi"}}),
        (ALL, {"persistentVolumeClaim": {"claimName": "spans"}}),
    ],
    ids=["default", "all"],
)
def test_the_collectors_queue_is_on_a_disk_that_it_may_write_to(
    tmp_path: Path, values: Mapping[str, Any], disk: Mapping[str, Any]
) -> None:
    rendered, _ = render(tmp_path, values)
    spec = rendered["Deployment", "ldfi-collector"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    (mounted,) = [each for each in container["volumeMounts"] if each["name"] == "queue"]
    assert DEFAULT_QUEUE.startswith(f"{mounted['mountPath']}/")
    assert not mounted.get("readOnly")
    assert {"name": "queue", **disk} in spec["volumes"]
    assert spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsGroup"]


def test_it_is_of_this_version_and_has_the_collectors_configuration() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)
    tag = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())["images"][0]
    assert tag["newTag"] == version
    copied = (CHART / "files" / "collector.yaml").read_text()
    assert copied == (DEPLOY / "collector" / "collector.yaml").read_text()
