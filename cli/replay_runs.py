"""``ldfi replay run`` and ``compare``: one version measured, or two held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldfi.cli.control import HERE, AsJson, Html, OptionalToken, Url
from ldfi.cli.durations import seconds as length_of

if TYPE_CHECKING:
    from ldfi.scenarios.replays.measurement import Measurement

Tolerance = Annotated[
    float,
    typer.Option(help="Percent by which a quantile may grow and still be the same.", min=0.0),
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the result in the service, with --token.")]


def run(
    file: Annotated[
        Path, typer.Argument(help="A recording (`ldfi replay record`), or YAML with `exemplars`.")
    ],
    target: Annotated[
        list[str],
        typer.Option(help="URL, or NAME=URL twice: both are asked in turns, the first is the old."),
    ],
    profile: Annotated[
        str, typer.Option(help="How the rate runs: constant, ramp, steps or soak.")
    ] = "constant",
    rate: Annotated[
        float, typer.Option(help="Requests a second to each target, at the most.", min=0.01)
    ] = 50.0,
    duration: Annotated[str, typer.Option(help="How long requests are due: 90s, 10m.")] = "60s",
    warm_up: Annotated[
        str | None, typer.Option(help="Send for so long before, and cut that off.")
    ] = None,
    mix: Annotated[
        str | None, typer.Option(help="Reads to writes, 80/20; else as recorded.")
    ] = None,
    fill: Annotated[
        list[str] | None,
        typer.Option(help="NAME=V1,V2 or NAME=@FILE: what to put where a `*` stands."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(help="NAME: VALUE, credentials say; sent, and never written down."),
    ] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Send methods that change something, too.")
    ] = False,
    connections: Annotated[
        int, typer.Option(help="Connections to each target, at most.", min=1, max=10_000)
    ] = 200,
    timeout: Annotated[
        float, typer.Option(help="Seconds from when a request is due until it is lost.", min=0.01)
    ] = 10.0,
    tolerance: Tolerance = 10.0,
    out: Annotated[Path | None, typer.Option(help="Keep what was measured here.")] = None,
    html: Html = None,
    jaeger: Annotated[
        str | None, typer.Option(help="Ask Jaeger's query service for traces of some requests.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(help="Or HOST:PORT: take in what the targets' services export, OTLP."),
    ] = None,
    keep: Keep = False,
    token: OptionalToken = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Send requests at times that wait for no answer, and say how fast and how well they went.

    One target: exit code 1 where requests failed. Two: they are compared, 1 where the new one is
    worse. 3 where that cannot be told, or the rate was not reached, 4 where nobody answers.
    """
    from ldfi.cli.load_run import Wanted, measured_by, told

    service = _service(url, token) if keep else None
    wanted = Wanted(
        file=file,
        targets=target,
        profile=profile,
        rate=rate,
        seconds=length_of(duration, "--duration"),
        warm_up=0.0 if warm_up is None else length_of(warm_up, "--warm-up"),
        mix=mix,
        fill=fill or [],
        headers=header or [],
        unsafe=unsafe,
        connections=connections,
        timeout=timeout,
        jaeger=jaeger,
        listen=listen,
    )
    measurement = measured_by(wanted, quiet=as_json)
    if out is not None:
        out.write_text(measurement.to_lines(), encoding="utf-8")
    raise typer.Exit(told([measurement], tolerance / 100, html, service, as_json=as_json))


def compare(
    files: Annotated[
        list[Path],
        typer.Argument(help="Files of `ldfi replay run --out`: old and new, or one with both."),
    ],
    tolerance: Tolerance = 10.0,
    html: Html = None,
    keep: Keep = False,
    token: OptionalToken = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Compare what was measured of two versions, class by class: success and latency.

    Exit code 0: the same. 1: the new one is worse. 3: cannot be told.
    """
    from ldfi.cli.load_run import told
    from ldfi.scenarios.replays.measurement import read_measurement

    service = _service(url, token) if keep else None
    measurements = [read_measurement(file) for file in files]
    _told_apart(measurements, files)
    raise typer.Exit(
        told(measurements, tolerance / 100, html, service, as_json=as_json, comparing=True)
    )


def _told_apart(measurements: Sequence[Measurement], files: Sequence[Path]) -> None:
    """Call two versions that bear one name by their files, or nobody knows which is the worse."""
    targets = [target for each in measurements for target in each.targets]
    if len(targets) == len(files) and len({each.name for each in targets}) < len(targets):
        for target, file in zip(targets, files, strict=True):
            target.name = str(file) if len({each.stem for each in files}) < 2 else file.stem


def _service(url: str, token: str | None) -> tuple[str, str]:
    """Say where a result is kept, before anything is sent. Raises Invalid without a token."""
    from ldfi.errors import Invalid

    if not token:
        raise Invalid("--keep needs a token of role operator: set LDFI_TOKEN, or give --token")
    return url, token
