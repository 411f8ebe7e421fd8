"""An analysis as one web page that needs nothing from anywhere: to be sent, kept, printed."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ldfi.experiments.analyze.picture import picture
from ldfi.experiments.analyze.report import Analysis, ClassReport
from ldfi.experiments.analyze.words import counted, fault_in_words, faults_in_words

_STYLE = """
body{background:#fff;padding:0 1rem}
body{font:15px/1.5 system-ui,sans-serif;color:#1f2d3a;max-width:1200px;margin:2rem auto}
h1{font-size:1.5rem}
h2{font-size:1.2rem;border-top:1px solid #d5dce3;padding-top:1rem;margin-top:2rem}
h3{font-size:1rem;margin:1rem 0 .2rem}ul{margin:.2rem 0;padding-left:1.2rem}
code,svg text{font:12px ui-monospace,monospace}svg .dim{fill:#7b8894}
.dim{color:#687684}.warn{color:#8a5a00}.red{color:#c0392b}.green{color:#27864b}
.graph{overflow-x:auto;margin:.5rem 0}table{border-collapse:collapse}
td,th{text-align:left;vertical-align:top;padding:.2rem 1rem .2rem 0}
"""


def page(analysis: Analysis, title: str = "What these traces say") -> str:
    """Render the page."""
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{counted(analysis.spans, 'span')} in {counted(analysis.traces, 'trace')};"
        f" outcomes known of {counted(analysis.outcomes, 'request')}.</p>",
        *_unread(analysis),
        *_contents(analysis),
        *(part for i, each in enumerate(analysis.classes) for part in _class(i, each, analysis)),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


def _unread(analysis: Analysis) -> Iterable[str]:
    lines = [f"Not read: <code>{escape(p)}</code>: {escape(r)}" for p, r in analysis.unread.items()]
    lines += [f"Left out: {count:,} × {escape(what)}" for what, count in analysis.skipped.items()]
    lines += [escape(note) for note in analysis.notes]
    if lines:
        yield _list("", lines, "warn")


def _contents(analysis: Analysis) -> Iterable[str]:
    yield "<table><tr><th>requests</th><th>class</th><th>single points of failure</th></tr>"
    for i, each in enumerate(analysis.classes):
        yield (
            f'<tr><td>{each.traces:,}</td><td><a href="#c{i}">{escape(each.name)}</a>'
            f' <span class="dim">{escape(each.service)}</span></td>'
            f"<td>{len(each.single_points)}</td></tr>"
        )
    yield "</table>"


def _class(number: int, each: ClassReport, analysis: Analysis) -> Iterable[str]:
    service = f'<span class="dim">{escape(each.service)}</span>'
    yield f'<h2 id="c{number}">{escape(each.name)} {service}</h2>'
    yield (
        f"<p>{counted(each.traces, 'request')}: {each.good:,} good, {each.failed:,} failed,"
        f" {each.refused:,} refused; {each.consistency:.0%} of the good ones in which nothing"
        f" failed rely on the same points.</p>"
    )
    if each.unfit:
        yield f'<p class="warn">Not fit for exploration: {escape(each.unfit)}.</p>'
    yield f'<div class="graph">{picture(each)}</div>'
    yield from _findings(each, analysis.max_size)
    yield from _supports(each)


def _findings(each: ClassReport, max_size: int) -> Iterable[str]:
    singles = [escape(fault_in_words(fault, each.callees)) for fault in each.single_points]
    larger = [escape(faults_in_words(h, each.callees)) for h in each.hypotheses if len(h) > 1]
    if each.more_hypotheses:
        larger.append("and more")
    yield _list("Single points of failure, as far as these traces know", singles, "red")
    yield _list(f"Together they might hurt (at most {max_size})", larger)
    tolerated = [
        escape(faults_in_words(t.faults, each.callees))
        + f' <span class="dim">({t.requests:,} ×, {t.origin})</span>'
        + (f", {escape(', '.join(t.instead))} stood in" if t.instead else "")
        for t in each.tolerated
    ]
    yield _list("Already proved tolerated", tolerated, "green")
    failures = [
        f"{f.requests:,} × {escape(' and '.join(f.suspects) or 'nothing in the trace')}"
        + ("; the root span says all was well" if f.hidden else "")
        + (f' <span class="dim">told: {escape(", ".join(f.told))}</span>' if f.told else "")
        for f in each.failures
    ]
    yield _list("Failed, and what the trace points at", failures)
    yield _list("Failed and yet succeeded", [escape(point) for point in each.retried])


def _supports(each: ClassReport) -> Iterable[str]:
    yield "<h3>Supports</h3><table><tr><th>requests</th><th>rely on</th><th>without</th></tr>"
    for support in each.supports:
        rely, without = ("<br>".join(map(escape, p)) for p in (support.points, support.failed))
        yield (
            f"<tr><td>{support.requests:,}</td><td><code>{rely or 'nothing'}</code></td>"
            f"<td><code>{without}</code></td></tr>"
        )
    yield "</table>"


def _list(title: str, lines: list[str], style: str = "") -> str:
    if not lines:
        return ""
    heading = f'<h3 class="{style}">{escape(title)}</h3>' if title else ""
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f'{heading}<ul class="{style}">{items}</ul>'
