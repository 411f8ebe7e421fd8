"""A run or a comparison as one web page that needs nothing: to be sent, kept, printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from statistics import median

from ldfi.scenarios.replays.comparing import EVERYTHING, SUCCESS, MetricDifference
from ldfi.scenarios.replays.intervals import Interval
from ldfi.scenarios.replays.lineages import ClassLineage
from ldfi.scenarios.replays.measurement import Measurement, TargetRun
from ldfi.scenarios.replays.outcome import RunComparison, intervals_of, with_all
from ldfi.scenarios.replays.plot import latency_picture
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
