"""A finding of a test as a scenario file, to be kept beside the code."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ldfi.explore.pytest.describe_test import words_of
from ldfi.explore.pytest.loop import Finding
from ldfi.explore.pytest.marker import Bounds
from ldfi.explore.pytest.run import Asked
from ldfi.explore.pytest.service import service_name
from ldfi.fit.protocol.faults import DOWN
from ldfi.lineage.outline import Outline
from ldfi.scenarios.redaction import HOLE, RawRequest, redact
from ldfi.scenarios.request_body import query_string
from ldfi.scenarios.scenario import VERSION, Scenario, calls, of_document


def write_scenario(
    folder: Path,
    test: str,
    finding: Finding,
    good: tuple[Outline, ...],
    bad: tuple[Outline, ...],
    bounds: Bounds,
) -> Path:
    """Write the file; its name depends on the test and the faults alone.

    Raises OSError, or InvalidScenario where something in it has the form of a secret.
    """
    scenario = scenario_of(test, finding, good, bad, bounds)
    words = re.sub(r"[^A-Za-z0-9]+", "-", test.rpartition("::")[2]).strip("-")[:60]
    path = folder / f"{words}-{scenario.id}.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(scenario.to_yaml(), encoding="utf-8")
    return path


def scenario_of(
    test: str,
    finding: Finding,
    good: tuple[Outline, ...],
    bad: tuple[Outline, ...],
    bounds: Bounds,
) -> Scenario:
    """Write the scenario of a finding; its request is the last that the test made before it
    failed."""
    faults = sorted(finding.faults)
    document = {
        "version": VERSION,
        "id": sha256("\n".join([test, *faults]).encode()).hexdigest()[:12],
        "title": f"{test} fails when {words_of(faults)}",
        "request_class": {"name": test, "service": service_name()},
        "request": _request(finding.run.asked),
        "faults": sorted(str(fault) for fault in finding.injected),
        "hypothesis": faults if any(each.startswith(DOWN) for each in faults) else [],
        "delay": bounds.delay,
        "lineage": {"expected": _lineage(good), "observed": _lineage(bad)},
        "evidence": {"minimal": True},
        "environment": {"ldfi": version("ldfi")},
    }
    return of_document(document, f"the scenario of {test}")


def _request(asked: Asked | None) -> dict[str, Any]:
    """Describe the request; a test that calls functions sends none, so that is left to be filled
    in."""
    if asked is None:
        return {"method": "GET", "path": f"/{HOLE}"}
    kept = redact(RawRequest(asked.method, asked.path, asked.query, asked.headers, asked.body))
    return {
        "method": kept.method,
        "path": kept.path,
        "query": query_string(kept.query),
        "headers": dict(kept.headers),
        "body": kept.body,
    }


def _lineage(outlined: tuple[Outline, ...]) -> list[dict[str, Any]]:
    return [each.model_dump(exclude_defaults=True) for each in calls(outlined)]
