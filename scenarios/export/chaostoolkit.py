"""Chaos Toolkit: an experiment whose hypothesis is that the tagged request itself goes well.

The hypothesis is looked at after the method only. One that fails *before* the method ends an
experiment as completed and not deviated, and this request fails as soon as it is sent. Nothing is
armed anywhere, so nothing has to be rolled back: the context is valid for one device and expires.

https://chaostoolkit.org/reference/api/experiment/
"""

from __future__ import annotations

from typing import Any, Final

from ldfi.errors import NotExpressible
from ldfi.fit.device import DEVICE_HEADER
from ldfi.scenarios.export.program import Program
from ldfi.scenarios.export.shell import word

CONTEXT: Final = "LDFI_CONTEXT"
TARGET: Final = "LDFI_TARGET"
DEVICE: Final = "LDFI_DEVICE"

WARNINGS: Final = (
    "NO PROOF: Chaos Toolkit cannot tell whether a fault fired. An experiment that completes "
    "proves a fix only if one did: `ldfi reproduce` says so.",
    "CONTEXT: it is signed when you run it, not kept in the file. See the description.",
)


def command(this: Program) -> str:
    """Write the command that makes a context for the scenario."""
    delay = f"{this.scenario.delay:g}"
    faults = " ".join(map(word, this.scenario.faults))
    return f'ldfi scenario context --device "${DEVICE}" --delay {delay} {faults}'


def experiment(this: Program, target: str | None) -> dict[str, Any]:
    """Write the experiment. Raises NotExpressible for an assertion that it has no tolerance for."""
    scenario = this.scenario
    where = {"type": "env", "key": TARGET, **({"default": target} if target else {})}
    plain = _probe("untagged-request", this, {})
    tagged = {"baggage": "${context}"}
    return {
        "title": scenario.title,
        "description": (
            f"Scenario {scenario.id} of ldfi. Run it with the key that the services know in "
            f'FIT_KEYS: export {DEVICE}=YOUR-DEVICE; {CONTEXT}="$({command(this)})" chaos run FILE'
        ),
        "tags": ["ldfi", scenario.id],
        "configuration": {
            "target": where,
            "device": {"type": "env", "key": DEVICE},
            "context": {"type": "env", "key": CONTEXT},
        },
        "steady-state-hypothesis": {
            "title": "A request tagged with the scenario's faults still succeeds",
            "probes": [
                {**_probe(f"tagged-request-{number}", this, tagged), "tolerance": tolerance}
                for number, tolerance in enumerate(_tolerances(this), start=1)
            ],
        },
        "method": [plain],
        "rollbacks": [],
        "runtime": {
            "hypothesis": {"strategy": "after-method-only"},
            "rollbacks": {"strategy": "always"},
        },
    }


def _probe(name: str, this: Program, tags: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "probe",
        "name": name,
        "provider": {
            "type": "http",
            "url": f"${{target}}{this.path.replace('$', '%24')}",
            "method": this.method,
            "headers": {**_as_text(this.headers), DEVICE_HEADER: "${device}", **tags},
            "timeout": [3, this.timeout],
        },
    }


def _as_text(headers: dict[str, str]) -> dict[str, str]:
    """Double the dollars, or Chaos Toolkit would put its own variables there."""
    return {name: value.replace("$", "$$") for name, value in headers.items()}


def _tolerances(this: Program) -> list[Any]:
    expect = this.scenario.expect
    if expect.body_contains is not None or expect.body_matches is not None:
        raise NotExpressible(
            "Chaos Toolkit parses a JSON body before it compares it, so text in the body cannot be "
            "asserted; use json_path"
        )
    tolerances: list[Any] = [
        expect.status or {"type": "range", "range": [200, 299], "target": "status"}
    ]
    if expect.json_path is not None:
        if expect.equals is None:
            raise NotExpressible(
                "Chaos Toolkit cannot assert that what json_path finds is not null; give `equals`"
            )
        tolerances.append(
            {
                "type": "jsonpath",
                "target": "body",
                "path": expect.json_path,
                "expect": [expect.equals],
            }
        )
    return tolerances
