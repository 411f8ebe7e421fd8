"""``ldfi scenario``: the format of scenario files."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ldfi.cli.control import AsJson, connected
from ldfi.cli.durations import seconds
from ldfi.cli.ids import path_of
from ldfi.errors import Invalid

if TYPE_CHECKING:
    from ldfi.scenarios.scenario import Scenario

MOST: Final = 3600.0
"""Seconds for which a context may be valid at most."""

app = typer.Typer(help="Scenario files: their format, and whether one is sound.")


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of scenario files; editors check and complete them by it."""
    from ldfi.scenarios.scenario import schema_text

    typer.echo(schema_text(), nl=False)


@app.command("check")
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Scenario files.")],
    as_json: AsJson = False,
) -> None:
    """Say whether scenario files can be read, and hold nothing they must not. Exit code 2: no."""
    from ldfi.scenarios.scenario import read

    titles = {str(file): read(file).title for file in files}
    if as_json:
        typer.echo(json.dumps(titles))
        return
    for name, title in titles.items():
        typer.echo(f"{name}: {title}")


@app.command("context")
def context(
    faults: Annotated[list[str], typer.Argument(metavar="FAULT", help="KIND@POINT; repeatable.")],
    device: Annotated[str, typer.Option(help="The device in whose name it is signed.")],
    delay: Annotated[
        float, typer.Option(min=0.001, max=9999, help="Seconds that a delay hangs, at the longest.")
    ] = 10.0,  # as contexts have it by default
    valid: Annotated[
        str, typer.Option("--for", help="How long it is valid: 30s, 10m. An hour at most.")
    ] = "60s",
    as_json: AsJson = False,
) -> None:
    """Print a signed `baggage` header with these faults, for requests of one device.

    FIT_KEYS holds the key. Whoever has the header can replay the faults for that device, until it
    expires: it belongs in no file. Lengths that are drawn are drawn anew each time it is printed.
    """
    import secrets

    from ldfi.fit import baggage
    from ldfi.fit.protocol.context import encode
    from ldfi.fit.protocol.faults import Fault
    from ldfi.fit.protocol.keys import VARIABLE, Keys
    from ldfi.fit.protocol.scenario import scenario_of

    lifetime = seconds(valid, "--for")
    if not 1 <= lifetime <= MOST:
        raise typer.BadParameter(f"{valid}: 1s to 1h", param_hint="--for")
    keys = Keys.parse(os.environ.get(VARIABLE, ""))
    try:
        meant = [Fault.parse(text) for text in faults]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FAULT") from error
    expires = math.ceil(time.time() + lifetime)
    ours, longest, draw_key = scenario_of(device), round(delay * 1000), secrets.token_hex(16)
    value = encode(keys, ours, "treatment", expires, meant, delay_ms=longest, draw_key=draw_key)
    header = baggage.with_entry("", value)
    typer.echo(json.dumps({"baggage": header, "expires": expires}) if as_json else header)


def scenario_from(source: str, url: str, token: str | None) -> Scenario:
    """Read a scenario file, or else a finding's scenario. Raises Invalid, NotFound, Unreachable."""
    from ldfi.scenarios.scenario import of_document, read

    file = Path(source)
    if file.exists() or file.suffix in {".yaml", ".yml", ".json"}:
        return read(file)
    if not token:
        raise Invalid(
            f"{source!r} is no file, so it is a finding's id, and the service has to be asked: set "
            "LDFI_TOKEN, or give --token"
        )
    with connected(url, token) as client:
        return of_document(client.get(f"{path_of(client, 'finding', source)}/scenario"))
