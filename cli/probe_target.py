"""``ldfi doctor --target``: signed requests through somebody's system, and their spans."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ldfi.cli.probe import Probe, calls_of, of_first, of_second
from ldfi.errors import NotFound
from ldfi.experiments.queries.diagnosis import Checkup

if TYPE_CHECKING:
    from ldfi.cli.client import Client
    from ldfi.fit.protocol.keys import Keys

DEVICE: Final = "ldfi-doctor"
PATIENCE: Final = 20.0
"""Seconds for an answer, and again for its spans: four times what exporters wait by default."""

LIFETIME: Final = 60.0
_NOBODY: Final = ("doctor>function:nothing",)
_MOST: Final = 100
_POLL: Final = 0.25


def probed(client: Client, keys: Keys, url: str, patience: float = PATIENCE) -> Iterator[Checkup]:
    """Send two requests of the control arm to ``url``, and say what came of them."""
    first = _sent(client, keys, url, _NOBODY, patience)
    yield from of_first(url, first)
    if first.seen is not None:
        called = calls_of(first.seen)[:_MOST]
        second = _sent(client, keys, url, called, patience) if called else first
        yield from of_second(called, second)


def _sent(client: Client, keys: Keys, url: str, points: Sequence[str], patience: float) -> Probe:
    import httpx

    from ldfi.fit import baggage
    from ldfi.fit.device import DEVICE_HEADER
    from ldfi.fit.protocol.context import encode
    from ldfi.fit.protocol.faults import Fault
    from ldfi.fit.protocol.scenario import scenario_of

    expires = math.ceil(time.time() + patience + LIFETIME)
    faults = [Fault.parse(f"error@{point}") for point in points]
    context = encode(keys, scenario_of(DEVICE), "control", expires, faults)
    trace_id = secrets.token_hex(16)
    headers = {
        DEVICE_HEADER: DEVICE,
        "baggage": baggage.with_entry("", context),
        "traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01",
    }
    before: int = client.get("/status")["spans"]
    try:
        status = httpx.get(url, headers=headers, timeout=patience).status_code
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return Probe(None, str(error) or type(error).__name__)
    answered = time.monotonic()
    while time.monotonic() < answered + patience:
        try:
            seen = client.get(f"/replays/{trace_id}")
            return Probe(status, seen=seen, after=time.monotonic() - answered)
        except NotFound:
            time.sleep(_POLL)
    return Probe(status, spans=client.get("/status")["spans"] - before)
