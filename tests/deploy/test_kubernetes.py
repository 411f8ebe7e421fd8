"""The Kubernetes manifests: their schemas, and what must hold of them besides."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
import yaml

from experiments.config import Config, is_secret, variable
from tests.deploy.programs import DEPLOY

FOLDER = DEPLOY / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
FILES: list[str] = KUSTOMIZATION["resources"]
Document = dict[str, Any]


def load(name: str) -> Document:
    document: Document = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return document


@pytest.fixture
def pod() -> Document:
    template: Document = load("deployment")["spec"]["template"]
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
    wrong = load("deployment")
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
    assert names <= options | secrets
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
    assert load("service")["spec"]["ports"][0]["targetPort"] in ports
    allowed = load("networkpolicy")["spec"]["ingress"][0]["ports"]
    assert [port["port"] for port in allowed] == [ports["http"]]
    assert int(load("configmap")["data"]["LDFI_PORT"]) == ports["http"]


def test_every_selector_meets_the_pod_and_kustomize_changes_none(pod: Document) -> None:
    labels = pod["metadata"]["labels"].items()
    selectors = [
        load("deployment")["spec"]["selector"]["matchLabels"],
        load("poddisruptionbudget")["spec"]["selector"]["matchLabels"],
        load("service")["spec"]["selector"],
        load("networkpolicy")["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels for selector in selectors)
    for added in KUSTOMIZATION["labels"]:
        assert not added.get("includeSelectors"), "it would narrow whom the NetworkPolicy lets in"
