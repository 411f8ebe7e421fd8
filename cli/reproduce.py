"""``ldfi reproduce``: replay a finding with one's own device: does it still fail?"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from ldfi.cli import exits
from ldfi.cli.control import HERE, AsJson, OptionalToken, Url
from ldfi.cli.scenario import scenario_from
from ldfi.cli.terminal import show

CODES = {
    "fails": exits.FOUND,
    "fixed": exits.FINE,
    "never-fired": exits.INCONCLUSIVE,
    "inconclusive": exits.INCONCLUSIVE,
}


def reproduce(
    source: Annotated[
        str, typer.Argument(metavar="FINDING|FILE", help="A scenario file, or a finding's id.")
    ],
    target: Annotated[str, typer.Option(help="URL of the application, at its edge.")],
    device: Annotated[
        str, typer.Option(help="Your own device id; nobody else's requests are touched.")
    ],
    times: Annotated[int, typer.Option(min=1, max=100, help="Requests with the faults.")] = 3,
    path: Annotated[
        str | None, typer.Option(help="Path and query to ask for; needed where it has holes (*).")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(help="NAME: VALUE, to be sent as well, such as credentials; repeatable."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="File with the body to send.")] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Send even what may change something (POST, …).")
    ] = False,
    steady_state: Annotated[
        Path | None,
        typer.Option(help="Chaos Toolkit experiment whose hypothesis says what is a good answer."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for an answer, beyond the delay.")
    ] = 10.0,
    jaeger: Annotated[
        str | None, typer.Option(help="URL of Jaeger, for the lineages.", show_default=False)
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(help="Receive spans (OTLP over HTTP) at HOST:PORT, for the lineages."),
    ] = None,
    quiet: Annotated[
        float, typer.Option(min=0.1, help="Seconds without a new span until a trace is whole.")
    ] = 6.0,  # a little more than the five seconds after which SDKs export
    url: Url = HERE,
    token: OptionalToken = None,
    as_json: AsJson = False,
) -> None:
    """Send a scenario's request, signed for your own device, with the faults and without.

    FIT_KEYS holds the key that the target's services know. Exit code 1: it still fails. 0: fixed.
    3: the faults never fired, or nobody can say.
    """
    from ldfi.cli.reproduce_run import (
        assertion_of,
        body_of,
        headers_of,
        replay,
        source_of,
    )
    from ldfi.cli.reproduce_view import picture
    from ldfi.fit.protocol.keys import VARIABLE, Keys
    from ldfi.scenarios.reproduction import Reproduction
    from ldfi.scenarios.request import Sending

    scenario = scenario_from(source, url, token)
    keys = Keys.parse(os.environ.get(VARIABLE, ""))
    assertion, blind = assertion_of(scenario, steady_state)
    headers, body = headers_of(header or []), body_of(data)
    sending = Sending(target, device, path, headers, body, unsafe, timeout)
    with source_of(jaeger, listen, quiet, url, token) as lineages:
        made = asyncio.run(replay(scenario, sending, keys, times, assertion, lineages))
    result = Reproduction(tuple(made), frozenset(scenario.faults), blind)
    verdict, _ = result.judged
    document = {"scenario": scenario.id, "target": target, "device": device, **result.to_json()}
    show(document, picture(scenario, result), as_json=as_json)
    raise typer.Exit(CODES[verdict])
