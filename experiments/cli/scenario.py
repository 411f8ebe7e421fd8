"""``ldfi scenario``: the format of scenario files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.scenarios.scenario import read, schema_text

app = typer.Typer(help="Scenario files: their format, and whether one is sound.")


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of scenario files; editors check and complete them by it."""
    typer.echo(schema_text(), nl=False)


@app.command("check")
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Scenario files.")],
) -> None:
    """Say whether scenario files can be read, and hold nothing they must not. Exit code 2: no."""
    for file in files:
        scenario = read(file)
        typer.echo(f"{file}: {scenario.title}")
