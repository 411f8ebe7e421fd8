"""``ldfi analyze``: what trace files say, without injecting anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ldfi.cli import exits
from ldfi.cli.control import AsJson
from ldfi.cli.extras import need
from ldfi.cli.secret import secret
from ldfi.cli.terminal import console


def analyze(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Trace files or folders, of any format.")
    ] = None,
    jaeger: Annotated[
        str | None, typer.Option(metavar="URL", help="Fetch traces by Jaeger's query API.")
    ] = None,
    tempo: Annotated[
        str | None, typer.Option(metavar="URL", help="Fetch traces from Grafana Tempo.")
    ] = None,
    service: Annotated[
        str, typer.Option(help="Fetch traces in which this service has a part.")
    ] = "",
    lookback: Annotated[str, typer.Option(help="Fetch the latest: 90s, 15m, 2h, 1d.")] = "1h",
    limit: Annotated[int, typer.Option(min=1, help="Fetch so many traces at most.")] = 1_000,
    header: Annotated[
        list[str] | None,
        typer.Option(help="Sent when fetching, NAME: VALUE, e.g. X-Scope-OrgID: team."),
    ] = None,
    traces_token: Annotated[
        str | None,
        typer.Option(
            envvar="LDFI_TRACES_TOKEN",
            callback=secret,
            help="Sent when fetching, as a bearer token; @FILE, or - for standard input.",
        ),
    ] = None,
    max_size: Annotated[
        int, typer.Option(help="List hypotheses of up to this many faults.", min=1, max=4)
    ] = 2,
    class_by: Annotated[
        list[str] | None,
        typer.Option(help="Request features that tell classes apart, e.g. query.page."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained page here.")] = None,
    png: Annotated[Path | None, typer.Option(help="Draw a picture for a chat here.")] = None,
    raw: Annotated[
        bool, typer.Option(help="Add everything known of each class, under exact names.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read traces; say what lost requests, what proved harmless, and what might still hurt."""
    from ldfi.analysis.analysis import analyze as analyze_files
    from ldfi.analysis.details import render_details
    from ldfi.analysis.html import page
    from ldfi.analysis.progress import progress_on
    from ldfi.analysis.render import render
    from ldfi.cli.trace_store import TraceStore, fetched, warn_of_limits, with_names

    if png is not None:
        need("png")
    paths = paths or []
    if not paths and jaeger is None and tempo is None:
        raise typer.BadParameter("give trace files, --jaeger or --tempo", param_hint="PATHS")
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise typer.BadParameter(f"there is no {', '.join(missing)}", param_hint="PATHS")
    given = (service, lookback, limit, tuple(header or ()), traces_token)
    store = TraceStore(jaeger, tempo, *given)
    with fetched(store) as more, progress_on(console(stderr=True)) as progress:
        analysis = analyze_files([*paths, *more], max_size, class_by or (), progress)
        analysis = with_names(analysis, more)
    warn_of_limits(store, analysis.traces)
    if html is not None:
        html.write_text(page(analysis), encoding="utf-8")
    if png is not None:
        from ldfi.analysis.png import png as drawn

        png.write_bytes(drawn(analysis.gist))
    if as_json:
        typer.echo(json.dumps(analysis.to_json()))
    else:
        render(analysis, console(markup=True))
        if raw:
            render_details(analysis, console(markup=True))
        if html is not None:
            typer.echo(f"Page written to {html}.")
        if png is not None:
            typer.echo(f"Picture written to {png}.")
    raise typer.Exit(exits.FINE if analysis.spans else exits.USAGE)
