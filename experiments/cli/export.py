"""``ldfi export``: faults in the words of other tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

from experiments.cli.control import AsJson
from experiments.export import envoy as to_envoy
from experiments.export import istio as to_istio
from experiments.export.mesh import WARNINGS, ProxyFault, proxy_faults
from fit.context import DEFAULT_DELAY_MS
from fit.faults import Fault

app = typer.Typer(help="Faults in the words of other tools.", no_args_is_help=True)

Faults = Annotated[
    list[str],
    typer.Argument(metavar="FAULT", help="As ldfi writes it: error@api>http:GET:ratings/titles/*"),
]
Delay = Annotated[
    float, typer.Option(help="Length of delays in seconds, as the campaign stamps them.")
]


@app.command()
def envoy(
    fault: Faults,
    cluster: Annotated[str, typer.Option(help="Envoy's name of the upstream cluster.")],
    delay: Delay = DEFAULT_DELAY_MS / 1000,
    max_active: Annotated[
        int, typer.Option(min=1, help="Most requests to fail at once; others go through.")
    ] = 5,
    as_json: AsJson = False,
) -> None:
    """Write Envoy's HTTP filters for faults at one upstream. Exit code 2: not expressible."""
    faults = _read(fault, delay)
    filters = to_envoy.http_filters(faults, cluster, max_active)
    _print("envoy", filters, [*WARNINGS, *to_envoy.warnings(max_active)], as_json=as_json)


@app.command()
def istio(
    fault: Faults,
    host: Annotated[
        str, typer.Option(help="The upstream's host, as ratings.shop.svc.cluster.local.")
    ],
    namespace: Annotated[str | None, typer.Option(help="Where the resource belongs.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Label of the calling pods; app=CALLER by default.")
    ] = None,
    delay: Delay = DEFAULT_DELAY_MS / 1000,
    as_json: AsJson = False,
) -> None:
    """Write Istio's VirtualService for faults at one host. Exit code 2: not expressible."""
    faults = _read(fault, delay)
    name, equals, value = (source or f"app={faults[0].caller}").partition("=")
    if not (name and equals and value):
        raise typer.BadParameter(f"{source!r} is no label; write NAME=VALUE", param_hint="--source")
    resource = to_istio.virtual_service(faults, host, namespace, {name: value})
    _print("istio", resource, [*WARNINGS, *to_istio.WARNINGS], as_json=as_json)


def _read(texts: Sequence[str], delay: float) -> list[ProxyFault]:
    try:
        faults, delay_ms = [Fault.parse(text) for text in texts], round(delay * 1000)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(str(error), param_hint="FAULT or --delay") from error
    return proxy_faults(faults, delay_ms)


def _print(target: str, config: dict[str, Any], warnings: list[str], *, as_json: bool) -> None:
    """The configuration on stdout, with its warnings; these on stderr as well, to be seen."""
    loud = Console(stderr=True, highlight=False, markup=False)
    for warning in warnings:
        loud.print(f"warning: {warning}", style="bold yellow")
    if as_json:
        typer.echo(json.dumps({"target": target, "config": config, "warnings": warnings}))
        return
    for warning in warnings:
        typer.echo(f"# {warning}")
    typer.echo(yaml.safe_dump(config, sort_keys=False, width=10**6), nl=False)
