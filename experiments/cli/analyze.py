"""``ldfi analyze``: what trace files say, without injecting anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ldfi.experiments.cli import exits
from ldfi.experiments.cli.control import AsJson
from ldfi.experiments.cli.terminal import console


def analyze(
    paths: Annotated[list[Path], typer.Argument(help="Trace files or folders, of any format.")],
    max_size: Annotated[
        int, typer.Option(help="List hypotheses of up to this many faults.", min=1, max=4)
    ] = 2,
    class_by: Annotated[
        list[str] | None,
        typer.Option(help="Request features that tell classes apart, e.g. query.page."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained page here.")] = None,
    raw: Annotated[
        bool, typer.Option(help="Add everything known of each class, under exact names.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read traces; say what lost requests, what proved harmless, and what might still hurt."""
    from ldfi.experiments.analyze.analysis import analyze as analyze_files
    from ldfi.experiments.analyze.details import render_details
    from ldfi.experiments.analyze.html import page
    from ldfi.experiments.analyze.progress import progress_on
    from ldfi.experiments.analyze.render import render

    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise typer.BadParameter(f"there is no {', '.join(missing)}", param_hint="PATHS")
    with progress_on(console(stderr=True)) as progress:
        analysis = analyze_files(paths, max_size, class_by or (), progress)
    if html is not None:
        html.write_text(page(analysis), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(analysis.to_json()))
    else:
        render(analysis, console(markup=True))
        if raw:
            render_details(analysis, console(markup=True))
        if html is not None:
            typer.echo(f"Page written to {html}.")
    raise typer.Exit(exits.FINE if analysis.spans else exits.USAGE)
