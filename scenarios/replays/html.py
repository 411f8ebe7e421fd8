"""A run or a comparison as one web page that needs nothing: to be sent, kept, printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from statistics import median
from typing import Final

from ldfi.scenarios.replays.comparing import EVERYTHING, SUCCESS, MetricDifference
from ldfi.scenarios.replays.intervals import Interval, quantile
from ldfi.scenarios.replays.lineages import ClassLineage
from ldfi.scenarios.replays.measurement import Measurement, TargetRun
from ldfi.scenarios.replays.outcome import RunComparison, intervals_of, with_all
from ldfi.scenarios.replays.series import Series

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2d3a;background:#fff}
body{max-width:1200px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}
h2{font-size:1.2rem;border-top:1px solid #d5dce3;padding-top:1rem;margin-top:2rem}
code,svg text{font:12px ui-monospace,monospace}svg .dim{fill:#687684}
.dim{color:#687684}.warn{color:#8a5a00}.worse{color:#c0392b;font-weight:600}.better{color:#27864b}
table{border-collapse:collapse}td,th{text-align:left;padding:.2rem 1rem .2rem 0}
.graph{overflow-x:auto}
"""

_WORDS = {
    "same": "the same",
    "worse": "worse",
    "better": "better",
    "cannot tell": "cannot be told",
}


def page(comparison: RunComparison) -> str:
    """Render the page."""
    old, new = comparison.old, comparison.new
    title = f"{new.name} against {old.name}: {_WORDS[comparison.verdict]}"
    how = "in turns within one run" if comparison.in_turns else "one after the other, in two runs"
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{old.requests:,} and {new.requests:,} requests, {how}; asked {comparison.asked:g}/s of"
        f" each, reached {old.reached:.4g}/s and {new.reached:.4g}/s. Latencies count from when a"
        " request was due. Intervals hold the true value with 95 %; a difference is claimed where"
        " there is one with 95 %, over everything on this page together.</p>",
        *(f'<p class="warn">Doubtful: {escape(each)}.</p>' for each in comparison.doubts),
        *_calls(comparison),
        *_failures([old, new]),
        *_classes(comparison),
    ]
    return _document(title, body)


def run_page(measurement: Measurement) -> str:
    """Render what was measured of one version."""
    (target,) = measurement.targets
    title = f"{target.name}: {target.requests:,} requests, {sum(target.reasons.values()):,} failed"
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(target.url)}, {escape(measurement.profile)}, {measurement.seconds:g} s;"
        f" asked {measurement.asked:g}/s, reached {target.reached:.4g}/s. Latencies count from when"
        " a request was due. Intervals hold the true value with 95 %.</p>",
        *(f'<p class="warn">Doubtful: {escape(each)}.</p>' for each in measurement.doubts),
        *_failures([target]),
    ]
    for name, series in with_all(target).items():
        body += [f"<h2>{escape(name)}</h2>", *_measured(series)]
        body += _called(target.lineages.get(name))
        body.append(f'<div class="graph">{latency_picture(name, {target.name: series})}</div>')
    return _document(title, body)


def _document(title: str, body: Iterable[str]) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


def _measured(series: Series) -> Iterator[str]:
    yield f"<p>{len(series.due):,} requests</p><table>"
    for metric, each in intervals_of(series).items():
        show = _share if metric == SUCCESS else _ms
        yield f"<tr><th>{metric}</th><td>{_with_ends(each, show)}</td></tr>"
    yield "</table>"


def _called(lineage: ClassLineage | None) -> Iterator[str]:
    if lineage is not None:
        yield f"<table><tr><th>called, in {lineage.requests:,} requests that were looked up</th>"
        yield "<th>times</th><th>median</th></tr>"
        for point, took in sorted(lineage.calls.items()):
            yield f"<tr><td><code>{escape(point)}</code></td><td>{len(took):,}</td>"
            yield f"<td>{_ms(median(took))}</td></tr>"
        yield "</table>"


def _calls(comparison: RunComparison) -> Iterator[str]:
    if comparison.calls:
        yield "<h2>Calls that changed</h2><table><tr><th>class</th><th>call</th><th></th></tr>"
        for each in comparison.calls:
            took = ""
            if each.kind == "slower":
                took = f", {_ms(each.old or 0.0)} before, {_ms(each.new or 0.0)} now"
            yield (
                f"<tr><td>{escape(each.request_class)}</td><td><code>{escape(each.point)}</code>"
                f"</td><td>{each.kind}{took}</td></tr>"
            )
        yield "</table>"


def _failures(targets: Sequence[TargetRun]) -> Iterator[str]:
    sides = [each for each in targets if each.reasons]
    if sides:
        yield "<h2>Failures</h2><ul>"
        for side in sides:
            for reason, count in side.reasons.most_common():
                yield f"<li>{escape(side.name)}: {count:,} × {escape(reason)}</li>"
            for each in side.first_failures:
                yield f'<li class="dim">{escape(side.name)}: {escape(each)}</li>'
        yield "</ul>"


def _classes(comparison: RunComparison) -> Iterator[str]:
    old, new = with_all(comparison.old), with_all(comparison.new)
    for each in comparison.classes:
        yield f"<h2>{escape(each.name)}</h2>"
        yield "<table><tr><th></th>"
        yield f"<th>{escape(comparison.old.name)}</th><th>{escape(comparison.new.name)}</th>"
        yield "<th>change</th><th></th></tr>"
        yield from (_row(metric) for metric in each.metrics)
        yield "</table>"
        sides = {
            f"{comparison.old.name} (old)": old.get(each.name, Series(EVERYTHING)),
            f"{comparison.new.name} (new)": new.get(each.name, Series(EVERYTHING)),
        }
        yield f'<div class="graph">{latency_picture(each.name, sides)}</div>'


def _row(metric: MetricDifference) -> str:
    show = _share if metric.metric == SUCCESS else _ms
    verdict = _WORDS[metric.verdict] if metric.chance is not None else "too few requests"
    unit = " points failing" if metric.metric == SUCCESS else " %"
    change = "" if metric.change is None else f"{_percent(metric.change.value)}{unit}"
    if metric.change is not None:
        low, high = _percent(metric.change.low), _percent(metric.change.high)
        change += f' <span class="dim">{low} to {high}</span>'
    kind = metric.verdict.replace(" ", "-")
    return (
        f"<tr><th>{metric.metric}</th><td>{_with_ends(metric.old, show)}</td>"
        f"<td>{_with_ends(metric.new, show)}</td><td>{change}</td>"
        f'<td class="{kind}">{verdict}</td></tr>'
    )


def _with_ends(each: Interval, show: Callable[[float], str]) -> str:
    ends = f"{show(each.low)} – {show(each.high)}"
    return f'{show(each.value)} <span class="dim">{ends}</span>'


def _ms(value: float) -> str:
    return "no end" if math.isinf(value) else f"{value * 1000:,.4g} ms"


def _share(value: float) -> str:
    return f"{100 * value:.2f} %"


def _percent(value: float) -> str:
    return "∞" if math.isinf(value) else f"{100 * value:+.1f}"


# Latencies as pictures: SVG elements that need nothing from anywhere.

WIDTH, HEIGHT, LEFT, BOTTOM = 560, 260, 64, 34
SHARES: Final = tuple(1 - 10 ** (-step / 10) for step in range(1, 31))
"""From the fifth to the p99.9, evenly in the number of nines."""
COLOURS: Final = ("#5b6b7b", "#b35309")
MARKS: Final = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99.9"}


def latency_picture(title: str, sides: Mapping[str, Series]) -> str:
    """Draw the latency of each side against the share of requests that are faster, the tail as
    wide as the rest; both axes logarithmic. Nothing for nothing."""
    curves = {name: curve for name, each in sides.items() if (curve := _curve(each))}
    values = [value for curve in curves.values() for _, value in curve]
    if not values:
        return ""
    low, high = math.log10(min(values)), math.log10(max(values))
    if high - low < 0.1:
        low, high = low - 0.05, high + 0.05
    parts = [*_across(), *_up(low, high)]
    for (name, curve), colour in zip(curves.items(), COLOURS, strict=False):
        dash = "" if colour == COLOURS[0] else ' stroke-dasharray="7 3"'
        points = " ".join(
            f"{_x(share):.1f},{_y(math.log10(v), low, high):.1f}" for share, v in curve
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}>'
            f"<title>{escape(name)}</title></polyline>"
        )
    for number, (name, colour) in enumerate(zip(curves, COLOURS, strict=False)):
        y = 16 + 16 * number
        parts.append(f'<text x="{LEFT + 8}" y="{y}" fill="{colour}">{escape(name)}</text>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
        f' aria-label="latency of {escape(title)}">{"".join(parts)}</svg>'
    )


def _curve(series: Series) -> Sequence[tuple[float, float]]:
    ordered = sorted(series.seconds)
    shares = (each for each in SHARES if len(ordered) * (1 - each) >= 1)
    found = ((share, quantile(ordered, share)) for share in shares)
    return [(share, value) for share, value in found if 0 < value < math.inf]


def _x(share: float) -> float:
    return LEFT + (WIDTH - LEFT - 10) * -math.log10(1 - share) / 3


def _y(log: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * (log - low) / (high - low)


def _across() -> list[str]:
    return [
        f'<line x1="{_x(share):.1f}" x2="{_x(share):.1f}" y1="10" y2="{HEIGHT - BOTTOM}"'
        f' stroke="#d5dce3"/><text x="{_x(share):.1f}" y="{HEIGHT - 12}" class="dim"'
        f' text-anchor="middle">{name}</text>'
        for share, name in MARKS.items()
    ]


def _up(low: float, high: float) -> list[str]:
    made = []
    for step in range(5):
        log = low + (high - low) * step / 4
        y = _y(log, low, high)
        made.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#eceff2"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="dim" text-anchor="end">'
            f"{10**log * 1000:.3g} ms</text>"
        )
    return made
