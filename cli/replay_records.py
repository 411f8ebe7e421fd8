"""``ldfi replay record``, ``export`` and ``schema``: recordings, made and handed on."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ldfi.cli import exits
from ldfi.cli.control import AsJson
from ldfi.cli.durations import seconds as length_of


class RecordFrom(StrEnum):
    """What a recording is made from."""

    AUTO = "auto"
    ACCESS_LOG = "access-log"
    HAR = "har"
    TRACES = "traces"


def record(
    file: Annotated[
        Path, typer.Argument(help="An access log (combined or JSON lines), a HAR file, or traces.")
    ],
    out: Annotated[Path, typer.Option(help="Where the recording goes.")],
    source: Annotated[
        RecordFrom, typer.Option("--from", help="What the file is, if it does not show.")
    ] = RecordFrom.AUTO,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Query parameter whose values stay, where they are plain words."),
    ] = None,
    bodies: Annotated[
        bool, typer.Option("--bodies", help="Keep the shape of JSON bodies, of HAR files.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Record requests from what there is of them, without secrets and identifiers.

    What is taken out leaves a `*`, which `ldfi replay run --fill` fills with values of staging.
    """
    from ldfi.scenarios.replays.sources import SourceKind, kind_of
    from ldfi.scenarios.replays.sources import record as read

    kinds: dict[RecordFrom, SourceKind] = {
        RecordFrom.ACCESS_LOG: "access log",
        RecordFrom.HAR: "har",
        RecordFrom.TRACES: "traces",
    }
    found = read(file, kinds.get(source) or kind_of(file), keep or [], bodies=bodies)
    out.write_text(found.recording.to_lines(), encoding="utf-8")
    requests = found.recording.requests
    total, kinds_of_them = sum(each.times for each in requests), len(requests)
    if as_json:
        counts = {"requests": total, "kinds": kinds_of_them, "unread": found.unread}
        dropped = {name: list(each) for name, each in found.dropped.items()}
        typer.echo(json.dumps({"file": str(out), **counts, "dropped": dropped}))
    else:
        typer.echo(
            f"{total} requests, {kinds_of_them} kinds of them, written to {out}; {found.unread} "
            "could not be read as requests."
        )
        for line in found.told():
            typer.echo(line)
    raise typer.Exit(exits.FINE)


def export(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    k6: Annotated[Path, typer.Option("--k6", help="Write a script for k6 here.")],
    profile: Annotated[str, typer.Option(help="constant, ramp, steps or soak.")] = "constant",
    rate: Annotated[float, typer.Option(help="Requests a second, at the most.", min=0.02)] = 1000.0,
    duration: Annotated[str, typer.Option(help="How long requests are due: 90s, 10m.")] = "60s",
    fill: Annotated[
        list[str] | None, typer.Option(help="NAME=V1,V2 or NAME=@FILE: what to put for a `*`.")
    ] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Send methods that change something, too.")
    ] = False,
    connections: Annotated[int, typer.Option(help="Virtual users of k6.", min=1)] = 200,
    as_json: AsJson = False,
) -> None:
    """Write a recording as a script for k6, which reaches rates that we do not."""
    from ldfi.cli.load_run import profile_of, values_of
    from ldfi.scenarios.replays.k6 import script
    from ldfi.scenarios.replays.prepared import prepared
    from ldfi.scenarios.replays.recording import read_recording

    requests, left_out = prepared(read_recording(file), values_of(fill or []), unsafe=unsafe)
    made = profile_of(profile, rate, length_of(duration, "--duration"))
    k6.write_text(script(requests, made, connections), encoding="utf-8")
    if as_json:
        counts = {"requests": len(requests), "left_out": len(left_out)}
        typer.echo(json.dumps({"file": str(k6), **counts}))
    else:
        out = f"{len(left_out)} are left out: {left_out}" if left_out else "none is left out."
        typer.echo(f"{len(requests)} requests written to {k6}; {out}")


def schema() -> None:
    """Print the JSON Schema of a line of a recording."""
    from ldfi.scenarios.replays.recording import schema as of_recording

    typer.echo(json.dumps(of_recording(), indent=2))
