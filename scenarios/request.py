"""Turns a scenario into requests: the same one again and again, with the faults and without.

Each carries a failure context in the name of the engineer's own device: the edge lets it in from
that device alone (:mod:`ldfi.fit.protocol.scenario`). Without the faults it is the context of the
control arm, so that both are traced alike. Contexts live for :data:`LIFETIME` seconds and are made
one by one.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

import httpx

from ldfi.errors import InvalidScenario
from ldfi.fit import baggage
from ldfi.fit.device import DEVICE_HEADER
from ldfi.fit.protocol.context import encode
from ldfi.fit.protocol.features import request_features
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.scenario import scenario_of
from ldfi.scenarios.redaction import HOLE
from ldfi.scenarios.replay import SAFE_METHODS, Assertion
from ldfi.scenarios.reproduction import Attempt
from ldfi.scenarios.scenario import Scenario

LIFETIME: Final = 30.0
"""Seconds for which a context is valid, beyond the longest that its request may take."""


@dataclass(frozen=True, slots=True)
class Sending:
    """How a scenario is sent. ``path``: path and query, where the scenario's has holes.

    ``headers``: what the target needs besides, credentials for instance; they are sent and never
    written down. ``timeout``: seconds for one whole answer, the scenario's delay not counted.
    """

    target: str
    device: str
    path: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    unsafe: bool = False
    timeout: float = 10.0


def url_of(scenario: Scenario, sending: Sending) -> httpx.URL:
    """Find out where the request goes. Raises InvalidScenario where it cannot be sent as it is, or
    would be of another class."""
    asked = sending.path or scenario.request.target
    _check_given(scenario, sending)
    if not asked.startswith("/"):
        raise InvalidScenario(f"{asked!r} is not a path; it begins with a slash")
    try:
        target = httpx.URL(sending.target)
        path, _, query = asked.partition("?")
        url = target.copy_with(path=target.path.rstrip("/") + path, query=query.encode() or None)
    except (httpx.InvalidURL, ValueError) as error:
        raise InvalidScenario(f"{asked!r} cannot be sent to {sending.target!r}: {error}") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise InvalidScenario(f"{sending.target!r} is not a target; give a URL of http or https")
    sent = f"{path}?{url.query.decode()}" if query else path
    missed = lacking(scenario, sent, headers_of(scenario, sending), sending.body)
    if missed is not None:
        raise InvalidScenario(f"{missed} (see --path, --data and --header)")
    return url


def _check_given(scenario: Scenario, sending: Sending) -> None:
    """Raise InvalidScenario where something has to be filled in first, or to be allowed."""
    wanted = scenario.request
    if sending.path is None and HOLE in wanted.target:
        raise InvalidScenario(
            f"{wanted.method} {wanted.target} has holes (*), where something was taken out; say "
            "what to ask for: --path '/…'"
        )
    if wanted.body is not None and sending.body is None:
        known = "" if wanted.body == HOLE else f", {json.dumps(wanted.body, ensure_ascii=False)}"
        raise InvalidScenario(
            f"the request has a body, of which only the shape is kept{known}; give it: --data FILE"
        )
    if wanted.method not in SAFE_METHODS and not sending.unsafe:
        raise InvalidScenario(
            f"{wanted.method} may change something each time it is sent; give --unsafe to send it"
        )


def headers_of(scenario: Scenario, sending: Sending) -> dict[str, str]:
    """List the headers of each request, by names in small letters, the context not among them."""
    of_scenario = {str(name): value for name, value in scenario.request.headers.items()}
    return {**of_scenario, **sending.headers, DEVICE_HEADER: sending.device}


def context_of(
    scenario: Scenario, device: str, keys: Keys, expires: int, number: int, *, faulty: bool
) -> str:
    """Sign the failure context of one request. ``expires``: Unix seconds. ``number``: which of the
    requests with these faults it is. Each draws lengths of its own, in every replay the same."""
    return encode(
        keys,
        scenario_of(device),
        "treatment" if faulty else "control",
        expires,
        scenario.injected(),
        delay_ms=max(1, round(scenario.delay * 1000)),
        draw_key=f"{scenario.id}\n{number}",
    )


async def attempts(
    scenario: Scenario, sending: Sending, keys: Keys, times: int, assertion: Assertion
) -> list[Attempt]:
    """Send it: in turn without the faults and with them, ``times`` each, one after the other.

    Redirects are not followed. Raises InvalidScenario.
    """
    url = url_of(scenario, sending)
    given = headers_of(scenario, sending)
    patience = sending.timeout + scenario.delay
    made: list[Attempt] = []
    async with httpx.AsyncClient(timeout=patience) as client:
        for number in range(2 * times):
            faulty = number % 2 == 1
            expires = math.ceil(time.time() + patience + LIFETIME)
            context = context_of(
                scenario, sending.device, keys, expires, number // 2, faulty=faulty
            )
            headers = {
                **given,
                "baggage": baggage.with_entry(given.get("baggage", ""), context),
                "traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01",
            }
            method = scenario.request.method
            request = httpx.Request(method, url, headers=headers, content=sending.body)
            made.append(await _attempt(client, request, assertion, patience, faulty))
    return made


async def _attempt(
    client: httpx.AsyncClient,
    request: httpx.Request,
    assertion: Assertion,
    patience: float,
    faulty: bool,
) -> Attempt:
    trace_id = request.headers["traceparent"].split("-")[1]
    status: int | None = None
    started = time.monotonic()
    try:
        async with asyncio.timeout(patience):
            response = await client.send(request, follow_redirects=False)
        status = response.status_code
        failure = assertion.failure(status, response.text, time.monotonic() - started)
    except (TimeoutError, httpx.TimeoutException):
        failure = "timeout"
    except httpx.HTTPError as error:
        failure = f"unreachable: {type(error).__name__}"
    return Attempt(faulty, trace_id, status, failure, time.monotonic() - started)


# Tells whether a request is one of its scenario's class, as an edge would see it.
#
# A request of another class may well go right where the finding does not, so that a scenario which
# sent one would call the finding fixed.
def lacking(
    scenario: Scenario, target: str, headers: Mapping[str, str], body: bytes | None = None
) -> str | None:
    """Return what keeps a request out of the class; None if it is in it, or no edge could tell.

    ``target``: path and query. The names of ``headers`` are in small letters.
    """
    predicate = scenario.request_class.meant()
    wanted = {each.feature for each in predicate.conditions}
    if "operation" in wanted:  # it did not come in over HTTP
        return None
    path, _, query = target.partition("?")
    method = scenario.request.method
    features = request_features(method, unquote(path), query, headers.items(), body, wanted)
    missed = [str(each) for each in predicate.conditions if not each.holds(features)]
    if not missed:
        return None
    return (
        f"not a request of {scenario.request_class.name}, so it would prove nothing; it would have "
        f"to be: {'; '.join(missed)}"
    )
