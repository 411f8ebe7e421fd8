"""``ldfi export``: faults in the words of other tools."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from ldfi.cli.control import HERE, AsJson, OptionalToken, Url
from ldfi.cli.scenario import scenario_from
from ldfi.cli.terminal import console

app = typer.Typer(help="Faults in the words of other tools.", no_args_is_help=True)

BESIDE = "127.0.0.1:9002"
"""Where ``ldfi-proxy envoy`` listens by default: beside Envoy."""
Caller = Annotated[
    str | None, typer.Option(help="The service whose requests pass that proxy; not for --edge.")
]
Edge = Annotated[
    bool, typer.Option("--edge", help="For a gateway: requests come in there, and are stamped.")
]
Processor = Annotated[str, typer.Option(help="HOST:PORT at which ldfi-proxy is reached.")]
Source = Annotated[
    str, typer.Argument(metavar="FINDING|FILE", help="A scenario file, or a finding's id.")
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
    from ldfi.scenarios.export import chaostoolkit as to_chaostoolkit
    from ldfi.scenarios.export.program import program

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
    from ldfi.scenarios.export import curl as to_curl
    from ldfi.scenarios.export.program import program

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
    from ldfi.scenarios.export import pytest_file as to_pytest
    from ldfi.scenarios.export.program import program

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
    from ldfi.scenarios.export import chaosmesh as to_chaosmesh
    from ldfi.scenarios.export.mesh import proxy_faults

    scenario = scenario_from(source, url, token)
    faults = proxy_faults(scenario.injected(), round(scenario.delay * 1000))
    label = _label(selector or f"app={faults[0].peer.partition('.')[0]}", "--selector")
    made = to_chaosmesh.resources(scenario, faults, namespace, label, port)
    _print("chaosmesh", made, list(to_chaosmesh.WARNINGS), as_json=as_json)


@app.command()
def envoy(
    caller: Caller = None,
    edge: Edge = False,
    processor: Processor = BESIDE,
    as_json: AsJson = False,
) -> None:
    """Write the filter with which Envoy asks ldfi-proxy. It is put in once, whatever is tried."""
    from ldfi.scenarios.export import envoy as to_envoy

    named, (host, port) = _named(caller, edge=edge), _address(processor)
    made = to_envoy.gateway(host, port) if edge else to_envoy.listener(named, host, port)
    _print("envoy", made, [], as_json=as_json)


@app.command()
def istio(
    caller: Caller = None,
    edge: Edge = False,
    processor: Processor = BESIDE,
    namespace: Annotated[str | None, typer.Option(help="Where the resource belongs.")] = None,
    source: Annotated[
        str | None,
        typer.Option(
            help="Label of the pods: app=CALLER by default, for --edge istio=ingressgateway."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the EnvoyFilter with which Istio's proxies ask ldfi-proxy. It is put in once."""
    from ldfi.scenarios.export import istio as to_istio

    named = _named(caller, edge=edge)
    name, value = _label(
        source or (f"app={named}" if named else "istio=ingressgateway"), "--source"
    )
    host, port = _address(processor)
    if edge:
        made = to_istio.gateway(host, port, namespace, {name: value})
    else:
        made = to_istio.envoy_filter(named, host, port, namespace, {name: value})
    _print("istio", made, [], as_json=as_json)


def _named(caller: str | None, *, edge: bool) -> str:
    """Name the caller; nobody is one at a gateway, where devices call."""
    if edge == bool(caller):
        say = "write --caller SERVICE, or --edge at the gateway where requests come in; not both"
        raise typer.BadParameter(say, param_hint="--caller")
    return caller or ""


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (host and port.isdecimal() and 0 < int(port) < 65536):
        raise typer.BadParameter(f"{text!r} is no HOST:PORT", param_hint="--processor")
    return host.strip("[]"), int(port)


def _label(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise typer.BadParameter(f"{text!r} is no label; write NAME=VALUE", param_hint=option)
    return name, value


def _warn(warnings: list[str]) -> None:
    """On stderr as well, to be seen."""
    loud = console(stderr=True)
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
