"""Java: calls have one name, in the process and in the lineage."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ldfi.fit.conformance.checks import signed
from ldfi.fit.conformance.host import ask, met
from ldfi.lineage.readers.formats import read_value
from tests.fit import java
from tests.fit.test_conformance import listening

ROOT = Path(__file__).parents[2]


def named(call: dict[str, str], service: str) -> str | None:
    """The point of a call by what was exported of it, less what ``fit`` itself has written."""
    attributes = {name: value for name, value in call.items() if not name.startswith((".", "fit."))}
    span: dict[str, Any] = {
        "traceId": call[".trace"],
        "spanId": "1" * 16,
        "name": call[".name"],
        "kind": 3,
        "startTimeUnixNano": call[".began"],
        "endTimeUnixNano": call[".began"],
        "attributes": written(attributes),
    }
    resource = {"attributes": written({"service.name": service})}
    (read,) = read_value(
        {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}
    ).spans
    return read.operation.point


def written(attributes: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]


@pytest.mark.parametrize("client", ["jdk", "jdk-async", "url"])
def test_a_call_has_one_name_at_both_ends(client: str) -> None:
    with listening(java.host(client), ROOT) as url, met(url) as it:
        it.run("")
        it.run(signed(it, "status:418"))
        it.run(signed(it, "refused", arm="control"))
        time.sleep(0.2)  # the span of a future ends after who waits for it goes on
        calls = ask(f"{url}/calls")
    assert len(calls) == 3
    assert {named(call, it.service) for call in calls} == {it.point()}
    assert [call.get("fit.point") for call in calls] == [None, it.point(), it.point()]
