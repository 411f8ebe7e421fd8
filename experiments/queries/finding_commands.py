"""Writes the commands with which somebody sees a finding for themselves: each runs as it stands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from ldfi.errors import InvalidScenario, NotExpressible
from ldfi.experiments.queries.scenario_of_finding import scenario_of
from ldfi.scenarios.export.program import program
from ldfi.scenarios.redaction import HOLE
from ldfi.scenarios.replay import SAFE_METHODS
from ldfi.scenarios.scenario import Scenario

TARGET: Final = "https://staging.example.com"
DEVICE: Final = "my-device"
BODY: Final = "body.json"


@dataclass(frozen=True, slots=True)
class Command:
    """``does``: what it is for. ``text``: lines for a shell."""

    does: str
    text: str


def scenario_if_any(session: Session, finding_id: str) -> Scenario | None:
    """Return the scenario of a finding; None where none can be made. Raises NotFound."""
    try:
        return scenario_of(session, finding_id)
    except InvalidScenario:
        return None


def reproduce_command(source: str, scenario: Scenario | None) -> str:
    """Write ``ldfi reproduce`` with all that the request of the scenario takes. ``source``: a
    finding's id or a file."""
    words = ["ldfi", "reproduce", source, "--target", TARGET, "--device", DEVICE]
    if scenario is not None:
        words += _path(scenario)
        words += ["--data", BODY] if scenario.request.body is not None else []
        words += [] if scenario.request.method in SAFE_METHODS else ["--unsafe"]
    return shlex.join(words)


def finding_commands(finding_id: str, scenario: Scenario | None) -> Iterator[Command]:
    """Yield them, the most useful first; what this finding cannot be exported to is left out."""
    file = f"{finding_id}.yaml"
    yield Command(
        "Send its request with these failures and without", reproduce_command(finding_id, scenario)
    )
    if scenario is not None:
        kept = f"ldfi findings scenario {finding_id} --out {file}"
        yield Command(
            "The same as a file, to keep beside the code",
            f"{kept}\n{reproduce_command(file, scenario)}",
        )
        if _asks_once(scenario):
            words = ["ldfi", "export", "curl", finding_id, "--target", TARGET, *_path(scenario)]
            yield Command("As one request of curl", shlex.join(words))
    yield Command(
        "Try it again on live traffic, on a few users", f"ldfi findings verify {finding_id}"
    )


def _path(scenario: Scenario) -> list[str]:
    asked = scenario.request.target
    return ["--path", asked] if HOLE in asked else []


def _asks_once(scenario: Scenario) -> bool:
    """Return whether a script that sends one request can show it."""
    try:
        program(scenario, scenario.request.target)
    except NotExpressible:
        return False
    return True
