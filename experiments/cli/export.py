"""``ldfi export``: faults in the words of other tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ldfi.experiments.cli.control import HERE, AsJson, OptionalToken, Url
from ldfi.experiments.cli.scenario import scenario_from

if TYPE_CHECKING:
    from ldfi.experiments.export.mesh import ProxyFault

app = typer.Typer(help="Faults in the words of other tools.", no_args_is_help=True)

Faults = Annotated[
    list[str],
    typer.Argument(
        metavar="FAULT|FINDING|FILE",
        help="As ldfi writes it, error@api>http:GET:ratings/titles/*; or a scenario file, or a "
        "finding's id.",
    ),
]
Source = Annotated[
    str, typer.Argument(metavar="FINDING|FILE", help="A scenario file, or a finding's id.")
]
Delay = Annotated[
    float | None,
    typer.Option(help="Length of delays in seconds, as requests are stamped; a scenario knows."),
]
Ask = Annotated[
    str | None, typer.Option("--path", help="Path and query to ask for, where it has holes (*).")
]
Target = Annotated[str | None, typer.Option(help="Where it is sent, if nobody says otherwise.")]


@app.command()
def chaostoolkit(
    source: Source,
    path: Ask = None,
    target: Target = None,
    url: Url = HERE,
    token: OptionalToken = None,
    as_json: AsJson = False,
) -> None:
    """Write a Chaos Toolkit experiment: it deviates as long as the scenario fails."""
    from ldfi.experiments.export import chaostoolkit as to_chaostoolkit
    from ldfi.experiments.export.program import program

    wanted = program(scenario_from(source, url, token), path)
    experiment = to_chaostoolkit.experiment(wanted, target)
    _print("chaostoolkit", experiment, list(to_chaostoolkit.WARNINGS), as_json=as_json)


@app.command()
def curl(
    source: Source,
    path: Ask = None,
    target: Target = None,
    url: Url = HERE,
    token: OptionalToken = None,
    as_json: AsJson = False,
) -> None:
    """Write a shell script that asks with curl, without the faults and with them."""
    from ldfi.experiments.export import curl as to_curl
    from ldfi.experiments.export.program import program

    script = to_curl.script(program(scenario_from(source, url, token), path), target)
    _print_text("curl", script, list(to_curl.WARNINGS), as_json=as_json)


@app.command()
def pytest(
    source: Source,
    path: Ask = None,
    url: Url = HERE,
    token: OptionalToken = None,
    as_json: AsJson = False,
) -> None:
    """Write a test file for pytest: it fails as long as the scenario does."""
    from ldfi.experiments.export import pytest_file as to_pytest
    from ldfi.experiments.export.program import program

    file = to_pytest.test_file(program(scenario_from(source, url, token), path))
    _print_text("pytest", file, list(to_pytest.WARNINGS), as_json=as_json)


@app.command()
def chaosmesh(
    source: Source,
    port: Annotated[int, typer.Option(min=1, max=65535, help="On which the pods are called.")],
    namespace: Annotated[str, typer.Option(help="Where the pods are.")] = "default",
    selector: Annotated[
        str | None, typer.Option(help="Label of the pods that are called; app=PEER by default.")
    ] = None,
    url: Url = HERE,
    token: OptionalToken = None,
    as_json: AsJson = False,
) -> None:
    """Write Chaos Mesh's HTTPChaos for faults at one upstream. Exit code 2: not expressible."""
    from ldfi.experiments.export import chaosmesh as to_chaosmesh
    from ldfi.experiments.export.mesh import proxy_faults

    scenario = scenario_from(source, url, token)
    faults = proxy_faults(scenario.injected(), round(scenario.delay * 1000))
    label = _label(selector or f"app={faults[0].peer.partition('.')[0]}", "--selector")
    made = to_chaosmesh.resources(scenario, faults, namespace, label, port)
    _print("chaosmesh", made, list(to_chaosmesh.WARNINGS), as_json=as_json)


@app.command()
def envoy(
    fault: Faults,
    cluster: Annotated[str, typer.Option(help="Envoy's name of the upstream cluster.")],
    delay: Delay = None,
    max_active: Annotated[
        int, typer.Option(min=1, help="Most requests to fail at once; others go through.")
    ] = 5,
    url: Url = HERE,
    token: OptionalToken = None,
    as_json: AsJson = False,
) -> None:
    """Write Envoy's HTTP filters for faults at one upstream. Exit code 2: not expressible."""
    from ldfi.experiments.export import envoy as to_envoy
    from ldfi.experiments.export.mesh import WARNINGS

    faults = _read(fault, delay, url, token)
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
    delay: Delay = None,
    url: Url = HERE,
    token: OptionalToken = None,
    as_json: AsJson = False,
) -> None:
    """Write Istio's VirtualService for faults at one host. Exit code 2: not expressible."""
    from ldfi.experiments.export import istio as to_istio
    from ldfi.experiments.export.mesh import WARNINGS

    faults = _read(fault, delay, url, token)
    name, value = _label(source or f"app={faults[0].caller}", "--source")
    resource = to_istio.virtual_service(faults, host, namespace, {name: value})
    _print("istio", resource, [*WARNINGS, *to_istio.WARNINGS], as_json=as_json)


def _read(
    texts: Sequence[str], delay: float | None, url: str, token: str | None
) -> list[ProxyFault]:
    """Faults as they are written, or all those of one scenario."""
    from ldfi.experiments.export.mesh import proxy_faults
    from ldfi.fit.context import DEFAULT_DELAY_MS
    from ldfi.fit.faults import Fault

    length = delay if delay is not None else DEFAULT_DELAY_MS / 1000
    if len(texts) == 1 and "@" not in texts[0]:
        scenario = scenario_from(texts[0], url, token)
        faults = list(scenario.injected())
        length = delay if delay is not None else scenario.delay
    else:
        try:
            faults = [Fault.parse(text) for text in texts]
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="FAULT") from error
    try:
        delay_ms = round(length * 1000)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(str(error), param_hint="--delay") from error
    return proxy_faults(faults, delay_ms)


def _label(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise typer.BadParameter(f"{text!r} is no label; write NAME=VALUE", param_hint=option)
    return name, value


def _warn(warnings: list[str]) -> None:
    """On stderr as well, to be seen."""
    loud = Console(stderr=True, highlight=False, markup=False)
    for warning in warnings:
        loud.print(f"warning: {warning}", style="bold yellow")


def _print(
    target: str,
    config: dict[str, Any] | list[dict[str, Any]],
    warnings: list[str],
    *,
    as_json: bool,
) -> None:
    """Print the configuration on stdout, with its warnings; a list as several documents."""
    import yaml

    _warn(warnings)
    if as_json:
        typer.echo(json.dumps({"target": target, "config": config, "warnings": warnings}))
        return
    for warning in warnings:
        typer.echo(f"# {warning}")
    documents = config if isinstance(config, list) else [config]
    typer.echo(yaml.safe_dump_all(documents, sort_keys=False, width=10**6), nl=False)


def _print_text(target: str, text: str, warnings: list[str], *, as_json: bool) -> None:
    """Print a file that is no YAML; its warnings on stderr alone."""
    _warn(warnings)
    if as_json:
        typer.echo(json.dumps({"target": target, "text": text, "warnings": warnings}))
    else:
        typer.echo(text, nl=False)
