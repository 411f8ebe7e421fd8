"""What ``ldfi reproduce`` does: requests with the faults and without, and their lineages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ldfi.cli.terminal import console
from ldfi.error_words import system
from ldfi.errors import Invalid, InvalidScenario, Unreachable
from ldfi.fit.protocol.keys import Keys
from ldfi.scenarios.replay import Assertion
from ldfi.scenarios.reproduction import Attempt
from ldfi.scenarios.request import Sending, attempts
from ldfi.scenarios.scenario import Scenario
from ldfi.scenarios.steady_state import assertion_for
from ldfi.scenarios.traces import Jaeger, Service, Source, listening, with_lineages


async def replay(
    scenario: Scenario,
    sending: Sending,
    keys: Keys,
    times: int,
    assertion: Assertion,
    source: Source | None,
) -> list[Attempt]:
    """Send the requests; with their lineages, where ``source`` answers."""
    made = await attempts(scenario, sending, keys, times, assertion)
    if source is None:
        return made
    try:
        return await with_lineages(made, source)
    except Unreachable as error:
        console(stderr=True).print(f"warning: no lineages: {error}", style="yellow")
        return made


def assertion_of(scenario: Scenario, steady_state: Path | None) -> tuple[Assertion, bool]:
    """Say what a good answer is, and whether that is a guess. Raises InvalidReplay."""
    if steady_state is not None:
        return assertion_for(steady_state, scenario.request.path), False
    return scenario.expect.assertion(), scenario.expect.blind


def headers_of(given: list[str]) -> dict[str, str]:
    """Headers as they are given, ``NAME: VALUE``. Raises InvalidScenario."""
    found: dict[str, str] = {}
    for text in given:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or not name.strip().isascii():
            raise InvalidScenario("a --header is NAME: VALUE")  # the value may be a secret
        found[name.strip().lower()] = value.strip()
    return found


def body_of(file: Path | None) -> bytes | None:
    """Read the body to send. Raises InvalidScenario for a file that cannot be read."""
    try:
        return None if file is None else file.read_bytes()
    except OSError as error:
        raise InvalidScenario(f"--data {file} cannot be read: {system(error)}") from error


@contextmanager
def source_of(
    jaeger: str | None, listen: str | None, quiet: float, url: str, token: str | None
) -> Iterator[Source | None]:
    """Who is asked for lineages: what was named, else the service if there is a token for it."""
    if jaeger is not None and listen is not None:
        raise Invalid("give --jaeger or --listen, not both: lineages come from one place")
    if listen is not None:
        with listening(listen, quiet) as listener:
            yield listener
    elif jaeger is not None:
        yield Jaeger(jaeger, quiet)
    else:
        yield Service(url, token) if token else None
