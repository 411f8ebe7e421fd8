"""Replayed traffic, from a file to the service: what ``ldfi replay`` does.

The outcomes go to the service as device metrics. The file says what to send and what a good answer
is (see ``docs/outcomes.md``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ldfi.cli.terminal import console
from ldfi.error_words import faults, unanswered, unreadable
from ldfi.errors import InvalidReplay, Unreachable
from ldfi.scenarios.document import load
from ldfi.scenarios.replay import (
    SAFE_METHODS,
    UNREACHABLE,
    Assertion,
    Exemplar,
    Replayer,
    Sent,
)
from ldfi.scenarios.steady_state import is_experiment, steady_state

REPORT_SECONDS = 0.5
MOST_AT_ONCE = 1_000
MAX_WAITING = 100_000
ENOUGH = 0.95
"""Share of a rate from which on it counts as reached: the last slots are cut off by the end."""


class _Exemplar(BaseModel):
    model_config = ConfigDict(extra="forbid")
    method: str = "GET"
    path: str
    query: str = ""
    headers: dict[str, str] = {}


class _Assertion(BaseModel):
    model_config = ConfigDict(extra="forbid")
    status: list[int] | None = Field(None, description="Good statuses; default: 200 to 299.")
    body_contains: str | None = None
    json_path: str | None = None
    equals: Any = None
    body_matches: str | None = None
    max_seconds: float | None = Field(None, gt=0)


class ReplayFile(BaseModel):
    """What ``ldfi replay`` reads."""

    model_config = ConfigDict(extra="forbid")
    exemplars: list[_Exemplar] = Field(min_length=1)
    assertion: _Assertion | None = None
    safe_methods: list[str] = list(SAFE_METHODS)


def read(file: Path) -> tuple[list[Exemplar], Assertion | None, list[str]]:
    """Exemplars, assertion and safe methods of a replay file, or of the steady state of a Chaos
    Toolkit experiment. Raises InvalidReplay."""
    try:
        document = load(file.read_text(encoding="utf-8"))
        if is_experiment(document):
            return *_of_steady_state(steady_state(document, str(file)), file), list(SAFE_METHODS)
        wanted = ReplayFile.model_validate(document)
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidReplay(f"{file} cannot be read: {unreadable(error)}") from error
    except ValidationError as error:
        raise InvalidReplay(f"{file}: " + "; ".join(faults(error))) from error
    return (
        [Exemplar(**each.model_dump()) for each in wanted.exemplars],
        _meant(wanted),
        (wanted.safe_methods),
    )


def _meant(wanted: ReplayFile) -> Assertion | None:
    given = wanted.assertion
    if given is None:
        return None
    values = given.model_dump(exclude={"status"}, exclude_unset=True)
    status = tuple(given.status) if given.status is not None else range(200, 300)
    return Assertion(status=status, **values)


def _of_steady_state(
    found: list[tuple[Exemplar, Assertion]], file: Path
) -> tuple[list[Exemplar], Assertion]:
    exemplars = [exemplar for exemplar, _ in found]
    assertions = [assertion for _, assertion in found]
    if any(each != assertions[0] for each in assertions):
        raise InvalidReplay(
            f"{file}: its probes ask for {len(found)} things and expect different answers; one "
            "replay has one assertion, so split the file"
        )
    return exemplars, assertions[0]


class Reporter:
    """Sends outcomes to the service, in batches; keeps them while it does not answer."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url.rstrip('/')}/api/v1/device-metrics"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._waiting: list[dict[str, Any]] = []
        self.sent = self.failed = 0

    def take(self, outcome: Sent) -> None:
        """One outcome has come in."""
        self.sent += 1
        self.failed += not outcome.success
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(
                {
                    "device": outcome.device,
                    "trace_id": outcome.trace_id,
                    "outcome": "success" if outcome.success else "failure",
                    "error_code": outcome.error_code,
                    "duration_ms": outcome.duration * 1000,
                }
            )

    async def report(self, client: httpx.AsyncClient) -> None:
        """Send what is waiting. Raises Unreachable."""
        while self._waiting:
            batch = self._waiting[:MOST_AT_ONCE]
            try:
                answer = await client.post(
                    self._url, json={"metrics": batch}, headers=self._headers
                )
                answer.raise_for_status()
            except httpx.HTTPError as error:
                raise Unreachable(f"{self._url} takes no outcomes: {unanswered(error)}") from error
            del self._waiting[: len(batch)]


async def run(
    replayer: Replayer, reporter: Reporter, seconds: float | None, *, quiet: bool
) -> dict[str, Any]:
    """Replay for so long, or until interrupted, and report; how many were sent, how many failed
    and why, and how fast it went.

    Raises Unreachable where the service takes no outcomes, or the target gave none.
    """
    started = time.monotonic()
    stop = asyncio.Event()
    sending = asyncio.create_task(replayer.run(reporter.take, stop))
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    end = None if seconds is None else time.monotonic() + seconds
    with Progress(*columns, console=console(stderr=True, quiet=quiet), transient=True) as progress:
        task = progress.add_task("replaying")
        async with httpx.AsyncClient(timeout=10.0) as client:
            try:
                while not sending.done() and (end is None or time.monotonic() < end):
                    await reporter.report(client)
                    shown = f"{reporter.sent} answered, {reporter.failed} failed"
                    progress.update(task, description=shown)
                    await asyncio.sleep(REPORT_SECONDS)
            except asyncio.CancelledError:
                pass  # Ctrl-C: what has been sent is still reported
            finally:
                stopped = max(time.monotonic() - started, 1 / replayer.rate)
                stop.set()
                await sending
                await reporter.report(client)
    failures = replayer.failures
    if reporter.sent and failures.reasons[UNREACHABLE] == reporter.sent:
        raise Unreachable(f"{replayer.target} never answered; {failures.shown[0]}")
    return {
        "sent": reporter.sent,
        "failed": reporter.failed,
        "reasons": dict(failures.reasons.most_common()),
        "first_failures": failures.shown,
        "asked_per_second": replayer.rate,
        "reached_per_second": round(reporter.sent / stopped, 2),
    }


def reached(counts: Mapping[str, Any]) -> bool:
    """Say whether the rate that was asked for was reached, but for what chance explains."""
    return bool(counts["reached_per_second"] >= ENOUGH * counts["asked_per_second"])


def described(counts: Mapping[str, Any]) -> Iterator[str]:
    """Put what came of a replay in lines for people."""
    yield f"{counts['sent']} sent, {counts['failed']} of them failed."
    for reason, count in counts["reasons"].items():
        yield f"  {count} × {reason}"
    if counts["first_failures"]:
        yield "For instance:"
    yield from (f"  {each}" for each in counts["first_failures"])
    if not reached(counts):
        asked, got = counts["asked_per_second"], counts["reached_per_second"]
        yield f"The rate was not reached: asked {asked:g}/s, reached {got:g}/s."
