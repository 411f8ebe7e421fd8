"""What ``ldfi replay run`` and ``compare`` do: files in, a table and an exit code out."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from ldfi.cli import exits
from ldfi.cli.control import posted
from ldfi.cli.replay_traffic import read
from ldfi.cli.reproduce_run import headers_of
from ldfi.cli.terminal import columns, console
from ldfi.error_words import unreadable
from ldfi.errors import Invalid, InvalidReplay, Unreachable
from ldfi.scenarios.replays.arrivals import RateProfile, Stretch, stretches
from ldfi.scenarios.replays.comparing import QUANTILES, SUCCESS
from ldfi.scenarios.replays.connections import TargetAddress
from ldfi.scenarios.replays.html import page, run_page
from ldfi.scenarios.replays.intervals import Interval
from ldfi.scenarios.replays.lineages import ClassLineage, seen
from ldfi.scenarios.replays.load_run import Load, TargetLoad, measure
from ldfi.scenarios.replays.measurement import Measurement, TargetRun
from ldfi.scenarios.replays.outcome import RunComparison, comparison_of, single
from ldfi.scenarios.replays.prepared import LeftOut, Prepared, of_exemplars, prepared
from ldfi.scenarios.replays.recording import RecordedRequest, read_recording
from ldfi.scenarios.traces import QUIET, Jaeger, SpanSource, listening

CODES: Final = {"same": exits.FINE, "worse": exits.FOUND, "cannot tell": exits.INCONCLUSIVE}
STYLES: Final = {"worse": "bold red", "better": "green", "same": "dim", "cannot tell": "yellow"}
YAML: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was typed."""

    file: Path
    targets: Sequence[str]
    profile: str
    rate: float
    seconds: float
    warm_up: float
    mix: str | None
    fill: Sequence[str]
    headers: Sequence[str]
    unsafe: bool
    connections: int
    timeout: float
    jaeger: str | None
    listen: str | None


def measured_by(wanted: Wanted, *, quiet: bool) -> Measurement:
    """Send what is wanted, and measure. Raises InvalidReplay, or Unreachable."""
    load = _load(wanted, quiet=quiet)
    headers = headers_of(list(wanted.headers))
    targets = [
        TargetLoad(name, origin, load, headers)
        for name, origin in targets_of(wanted.targets).items()
    ]
    if not quiet:
        total = load.due * load.seconds * len(targets)
        console(stderr=True).print(f"{total:.0f} requests in {load.seconds:g} s …", style="dim")
    started = time.time()
    seconds, late, lineages = asyncio.run(_sent(load, targets, wanted))
    measurement = Measurement(
        wanted.file.name, wanted.profile, wanted.seconds, load.due, started, late
    )
    measurement.targets = [
        TargetRun(
            each.name,
            each.origin.url,
            each.answered / seconds,
            {name: series.after(load.warm_up) for name, series in sorted(each.series.items())},
            each.failures.shown,
            lineages.get(each.name, {}),
        )
        for each in targets
    ]
    return measurement


async def _sent(
    load: Load, targets: Sequence[TargetLoad], wanted: Wanted
) -> tuple[float, float, dict[str, dict[str, ClassLineage]]]:
    """Send everything, and look up what some of the requests called, where somebody knows."""
    with _spans(wanted) as source:
        seconds, late = await measure(load, targets)
        if source is None:
            return seconds, late, {}
        await asyncio.sleep(QUIET)  # until the last spans are exported
        try:
            lineages = {each.name: await seen(each.traces, source) for each in targets}
        except Unreachable as error:
            console(stderr=True).print(f"warning: no lineages: {error}", style="yellow")
            return seconds, late, {}
        return seconds, late, lineages


@contextmanager
def _spans(wanted: Wanted) -> Iterator[SpanSource | None]:
    if wanted.jaeger is not None and wanted.listen is not None:
        raise Invalid("give --jaeger or --listen, not both: lineages come from one place")
    if wanted.listen is not None:
        with listening(wanted.listen) as listener:
            yield listener
    else:
        yield None if wanted.jaeger is None else Jaeger(wanted.jaeger)


def targets_of(given: Sequence[str]) -> dict[str, TargetAddress]:
    """Read ``URL`` or ``NAME=URL``. Raises InvalidReplay where two have one name, or there are
    more than two."""
    found: dict[str, TargetAddress] = {}
    for text in given:
        name, equals, url = text.partition("=")
        if not equals or "/" in name:
            name, url = "target", text
        if name in found:
            raise InvalidReplay(
                f"two targets are called {name!r}: give --target old=URL --target new=URL"
            )
        found[name] = TargetAddress.of(url)
    if len(found) > 2:
        raise InvalidReplay("two targets at most: the old version and the new one")
    return found


def _load(wanted: Wanted, *, quiet: bool) -> Load:
    requests, left_out = _requests(wanted)
    if left_out and not quiet:
        console(stderr=True).print(
            f"{len(left_out)} recorded requests are left out: {left_out}",
            style="yellow",
            soft_wrap=True,
        )
    made = profile_of(wanted.profile, wanted.rate, wanted.seconds)
    if wanted.warm_up:
        mean = sum(each.requests for each in made) / wanted.seconds
        made = (Stretch(wanted.warm_up, mean, mean), *made)
    return Load(
        requests, made, wanted.warm_up, _writes(wanted.mix), wanted.connections, wanted.timeout
    )


def profile_of(name: str, rate: float, seconds: float) -> tuple[Stretch, ...]:
    """Read a profile by its name. Raises InvalidReplay."""
    try:
        profile = RateProfile(name)
    except ValueError as error:
        raise InvalidReplay(f"{name!r} is no profile: {', '.join(RateProfile)}") from error
    return stretches(profile, rate, seconds)


def _requests(wanted: Wanted) -> tuple[list[Prepared], LeftOut]:
    if wanted.file.suffix.lower() in YAML:
        exemplars, assertion, safe = read(wanted.file)
        allowed = {each.upper() for each in safe}
        kept = [e for e in exemplars if wanted.unsafe or e.method.upper() in allowed]
        if not kept:
            raise InvalidReplay(f"{wanted.file} holds only requests that are not declared safe")
        out = [RecordedRequest(method=e.method, path=e.path) for e in exemplars if e not in kept]
        return of_exemplars(kept, assertion), LeftOut(writes=out)
    return prepared(read_recording(wanted.file), values_of(wanted.fill), unsafe=wanted.unsafe)


def values_of(given: Sequence[str]) -> dict[str, list[str]]:
    """Read ``NAME=V1,V2`` or ``NAME=@FILE``, a value a line. Raises InvalidReplay."""
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, values = text.partition("=")
        try:
            if values.startswith("@"):
                listed = Path(values[1:]).read_text(encoding="utf-8").splitlines()
            else:
                listed = values.split(",")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidReplay(
                f"--fill {name}: {values[1:]} cannot be read: {unreadable(error)}"
            ) from error
        found[name] = [each.strip() for each in listed if each.strip()]
        if not (equals and name and found[name]):
            raise InvalidReplay(f"--fill {text[:40]!r}: give NAME=V1,V2 or NAME=@FILE")
    return found


def _writes(mix: str | None) -> float | None:
    if mix is None:
        return None
    reads, _, writes = mix.partition("/")
    try:
        parts = float(reads), float(writes)
    except ValueError as error:
        raise InvalidReplay(f"--mix {mix!r}: give reads to writes, 80/20 say") from error
    if min(parts) < 0 or not 0 < sum(parts) < math.inf:
        raise InvalidReplay(f"--mix {mix!r}: give reads to writes, 80/20 say")
    return parts[1] / sum(parts)


def told(
    measurements: Sequence[Measurement],
    tolerance: float,
    html: Path | None,
    service: tuple[str, str] | None,
    *,
    as_json: bool,
    comparing: bool = False,
) -> int:
    """Print what came of it, and return the exit code."""
    if comparing or len(measurements[0].targets) > 1:
        comparison = comparison_of(measurements, tolerance)
        document, picture = comparison.to_json(), _compared(comparison)
        code = CODES[comparison.verdict]
        if html is not None:
            html.write_text(page(comparison), encoding="utf-8")
    else:
        if html is not None:
            html.write_text(run_page(measurements[0]), encoding="utf-8")
        document, picture = single(measurements[0]), _single(measurements[0])
        failed = any(target.reasons for target in measurements[0].targets)
        code = exits.FOUND if failed else exits.FINE
        code = exits.INCONCLUSIVE if not failed and measurements[0].doubts else code
    if not as_json:
        console().print(picture)
    try:
        if service is not None:
            kept = posted(*service, "/replays/runs", {"document": document})
            document = {**document, "kept": kept["id"]}
    finally:  # what was measured is told even where nobody keeps it
        if as_json:
            typer.echo(json.dumps(document))
    return code


def _single(measurement: Measurement) -> RenderableType:
    document = single(measurement)
    table = columns("class", "requests", "metric", "value", "95 % interval")
    for each in document["classes"]:
        for metric in (SUCCESS, *QUANTILES):
            show = _share if metric == SUCCESS else _ms
            value, low, high = (math.inf if v is None else v for v in each[metric])
            requests = f"{each['requests']:,}" if metric == SUCCESS else ""
            name = each["class"] if metric == SUCCESS else ""
            table.add_row(name, requests, metric, show(value), f"{show(low)} – {show(high)}")
    rate = f"asked {measurement.asked:g}/s, reached {measurement.targets[0].reached:.4g}/s"
    return Group(table, Text(rate), *_remarks(document))


def _remarks(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    for side in ("target", "old", "new"):
        if side in document:
            target = document[side]
            for reason, count in target["reasons"].items():
                yield Text(f"{target['name']}: {count} × {reason}")
            yield from (Text(f"  {each}") for each in target["first_failures"])
    yield from (Text(f"Doubtful: {each}.", "yellow") for each in document["doubts"])


def _compared(comparison: RunComparison) -> RenderableType:
    old, new = comparison.old, comparison.new
    table = columns("class", "metric", old.name, new.name, "change", "verdict", whole=2)
    for each in comparison.classes:
        for metric in each.metrics:
            found = metric.verdict if metric.chance is not None else "too few"
            show = _share if metric.metric == SUCCESS else _ms
            change = "" if metric.change is None else _change(metric.metric, metric.change)
            table.add_row(
                each.name,
                metric.metric,
                show(metric.old.value),
                show(metric.new.value),
                change,
                Text(found, STYLES.get(found, "dim")),
            )
    rates = " and ".join(f"{each.name} {each.reached:.4g}/s" for each in (old, new))
    calls = [
        Text(f"{each.request_class}: {each.point} is {each.kind}{_from(each.old, each.new)}")
        for each in comparison.calls
    ]
    verdict = Text(f"{new.name} against {old.name}: {comparison.verdict}", "bold")
    reached = Text(f"asked {comparison.asked:g}/s of each, reached {rates}")
    return Group(table, *calls, reached, *_remarks(comparison.to_json()), verdict)


def _from(old: float | None, new: float | None) -> str:
    return "" if old is None or new is None else f": {_ms(old)} before, {_ms(new)} now"


def _share(value: float) -> str:
    return f"{100 * value:.2f} %"


def _ms(value: float) -> str:
    if math.isinf(value):
        return "no answer"
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def _change(metric: str, change: Interval) -> str:
    unit = " points" if metric == SUCCESS else " %"
    value, low, high = (
        "∞"
        if math.isinf(each)
        else f"{100 * each:+.2f}"
        if abs(each) < 0.1
        else f"{100 * each:+.0f}"
        for each in (change.value, change.low, change.high)
    )
    return f"{value}{unit} ({low} to {high})"
