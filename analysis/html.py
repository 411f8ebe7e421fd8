"""An analysis as one web page that needs nothing from anywhere: to be sent, kept, printed.

It says what the terminal says, in the same words, and holds the exact names behind what it says.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from typing import Final

from ldfi.analysis.picture import MEANINGS, picture
from ldfi.analysis.report import Analysis, ClassReport
from ldfi.analysis.summary import LostWith, RedItem, Summary
from ldfi.analysis.words import counted, fault_in_words, faults_in_words

# How the page looks: on a phone and on a desk, in the light, in the dark and on paper.

STYLE: Final = """
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--text:#17202a;--muted:#566573;
--line:#dde3e9;--red:#b3261e;--soft:#fbe9e7;--green:#1b6e3c;--greens:#e6f4ea;--amber:#8a5a00}
@media(prefers-color-scheme:dark){:root{--page:#10151b;--card:#19212a;--text:#e8edf2;--muted:#9fb0bf;
--line:#2c3844;--red:#ff8a80;--soft:#3b2020;--green:#7fd6a0;--greens:#173324;--amber:#f0c060}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,sans-serif;
overflow-wrap:anywhere}
main{max-width:1120px;margin:0 auto;padding:32px 24px 64px}
.mast,.muted{color:var(--muted);font-size:14px}
h1{font-size:40px;line-height:1.15;margin:16px 0 8px;letter-spacing:-.02em}
h2{font-size:20px;margin:0 0 8px}h3{font-size:15px;margin:16px 0 4px}p{margin:0 0 8px}
.lead{font-size:18px;color:var(--muted)}.missing{color:var(--amber)}
.hidden{border-left:4px solid var(--red);padding-left:12px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:20px;
margin-top:20px;min-width:0}
.two{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,400px);gap:0 20px;align-items:start}
ul,ol{margin:0;padding:0;list-style:none}
li{padding:10px 0;border-top:1px solid var(--line)}li:first-child{border-top:0;padding-top:2px}
li li,.plain li{padding:2px 0;border:0}
.proved{border-left:4px solid var(--green)}.red{color:var(--red)}.green{color:var(--green)}
.do{color:var(--muted)}.do b{color:var(--amber)}
.meter{display:block;width:100%;height:10px;margin:6px 0;border-radius:5px;background:var(--page)}
.meter .a{fill:var(--red)}.meter .b{fill:var(--soft);stroke:var(--red);stroke-dasharray:3 2}
.graph{display:block;width:100%;max-width:440px;height:auto;margin:0 auto 12px}
.graph text{font:12px ui-monospace,monospace;fill:var(--text)}.graph .m{font-weight:700}
.graph .e{fill:none;stroke:var(--muted);stroke-width:1.3;opacity:.6}
.s{fill:var(--card);stroke:var(--muted);stroke-width:1.5}
.untried .s{stroke-dasharray:4 3}.silent .s{fill:var(--page);stroke-width:3}
.unclear .s{stroke:var(--amber);stroke-dasharray:1 3}
.lost .s{fill:var(--soft);stroke:var(--red);stroke-width:2.5}
.harmless .s{fill:var(--greens);stroke:var(--green)}
.key b{display:inline-block;min-width:1em}
summary{cursor:pointer;font-weight:600}details details summary,.exact summary{font-weight:400;
color:var(--muted);font-size:14px}
code{font:13px/1.5 ui-monospace,monospace}
@media(max-width:900px){.two{grid-template-columns:minmax(0,1fr)}}
@media(max-width:760px){main{padding:16px 12px 40px}h1{font-size:28px}.lead{font-size:16px}
.card{padding:14px;margin-top:14px}}
@media print{body{background:#fff}.card{break-inside:avoid}}
"""

POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none';"
    f" style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
)
"""What a browser may load for the page: nothing, and no style but this."""


def page(analysis: Analysis, title: str = "What would hurt your users") -> str:
    """Render the page."""
    summary = analysis.gist
    parts = [
        f'<p class="mast">{escape(title)} · ldfi analyze</p><h1>{escape(summary.headline)}</h1>',
        *(_text("lead", summary.lead) if analysis.classes else ()),
        *_text("missing", summary.missing),
        *(line for each in summary.masked for line in _text("hidden", f"Hidden: {each.says}.")),
        '<div class="two"><div>',
        *_harmless(summary),
        *_lost(summary),
        *_red(summary),
        "</div><div>",
        *_picture(summary),
        "</div></div>",
        *_classes(analysis),
        _read(analysis),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _text(style: str, text: str) -> Iterable[str]:
    if text:
        yield f'<p class="{style}">{escape(text)}</p>'


def _card(title: str, note: str, items: Iterable[str], style: str = "") -> Iterable[str]:
    listing = "".join(f"<li>{item}</li>" for item in items)
    if listing:
        yield f'<section class="card {style}"><h2>{escape(title)}</h2>'
        yield f'<p class="muted">{escape(note)}</p><ul>{listing}</ul></section>'


def _harmless(summary: Summary) -> Iterable[str]:
    yield from _card(
        "Your own traffic has proved harmless",
        "These failed while users got what they asked for. No experiment is needed to know it.",
        (
            f'<span class="green" aria-hidden="true">✓</span> {escape(each.says)}'
            + _exact_names(each.faults)
            for each in summary.harmless
        ),
        "proved",
    )


def _lost(summary: Summary) -> Iterable[str]:
    most = max((each.lost for each in summary.lost), default=1)
    items = [
        f"<b>{escape(each.service)}</b> {escape(each.says)}{_meter(each, most)}"
        + _exact_names(each.points)
        for each in summary.lost
    ]
    if summary.unexplained:
        items.append(f"nothing says why: {summary.unexplained:,}")
    yield from _card(
        "Requests lost, by service",
        "Seen (solid): nothing else failed. Suspected (dashed): something else did, or in doubt.",
        items,
    )


def _meter(each: LostWith, most: int) -> str:
    seen, lost = (round(1000 * n / most, 1) for n in (each.seen, each.lost))
    return (
        '<svg class="meter" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="a" width="{seen}" height="10"/>'
        f'<rect class="b" x="{seen}" width="{round(lost - seen, 1)}" height="10"/></svg>'
    )


def _red(summary: Summary) -> Iterable[str]:
    yield from _card(
        "What is red, and why", "Each call once, the worst first.", map(_item, summary.red)
    )


def _item(each: RedItem) -> str:
    why = "".join(f"<p>{escape(reason)}.</p>" for reason in each.reasons)
    advice = "".join(f'<p class="do"><b>Do</b> {escape(line)}</p>' for line in each.advice)
    return f'<b class="red">{escape(each.name)}</b>{why}{advice}{_exact_names(each.points)}'


def _exact_names(names: Iterable[str]) -> str:
    lines = "<br>".join(f"<code>{escape(name)}</code>" for name in names)
    return f'<details class="exact"><summary>exact names</summary>{lines}</details>'


def _picture(summary: Summary) -> Iterable[str]:
    drawn = picture(summary)
    if drawn:
        there = {each.standing for each in summary.services}
        key = "<br>".join(
            f"<b>{mark}</b> {said}" for name, (mark, said) in MEANINGS.items() if name in there
        )
        yield f'<section class="card"><h2>Your services</h2>{drawn}'
        yield f'<p class="key muted">{key}</p></section>'


def _classes(analysis: Analysis) -> Iterable[str]:
    summary = analysis.gist
    items = [
        f'<b>{escape(each.name)}</b> <span class="muted">at {escape(each.service)}</span>'
        f"<p>{escape(each.says)}</p>"
        for each in summary.classes
    ]
    if summary.jobs:
        items.append(
            f"{counted(summary.jobs, 'trace')} of jobs, consumers or start-up, no requests"
        )
    yield from _card("By what users were doing", "As far as these traces know.", items)
    yield from _card(
        "Everything known, under exact names",
        "What each kind of request relies on, survives and fails with.",
        (exact(each, analysis.max_size) for each in analysis.classes),
    )


def _read(analysis: Analysis) -> str:
    lines = [
        f"{counted(analysis.spans, 'span')} in {counted(analysis.traces, 'trace')}"
        f" from {counted(sum(map(bool, analysis.files.values())), 'file')}; outcomes known of"
        f" {counted(analysis.outcomes, 'request')}.",
        *(f"Not read: {path}: {reason}" for path, reason in analysis.unread.items()),
        *(f"Left out: {count:,} × {what}" for what, count in analysis.skipped.items()),
        *analysis.notes,
    ]
    return "".join(_card("What was read", "", map(escape, lines)))


# Everything known of a class under exact names, as a part of the page that is opened on demand.
def exact(each: ClassReport, max_size: int) -> str:
    """Render one class."""
    parts = "".join([*_findings(each, max_size), *_failures(each), *_supports(each)])
    return (
        f"<details><summary>{escape(each.name)} <span class='muted'>at"
        f" {escape(each.service)}</span></summary>"
        f"<p class='muted'>{counted(each.traces, 'request')}: {each.good:,} good,"
        f" {each.failed:,} failed, {each.refused:,} refused; {each.consistency:.0%} of the good"
        f" ones in which nothing failed rely on the same points.</p>{parts}</details>"
    )


def _findings(each: ClassReport, max_size: int) -> Iterable[str]:
    singles = [fault_in_words(fault, each.callees) for fault in each.single_points]
    larger = [faults_in_words(h, each.callees) for h in each.hypotheses if len(h) > 1]
    if each.more_hypotheses:
        larger.append("and more")
    tolerated = [
        f"{faults_in_words(t.faults, each.callees)} ({t.requests:,} ×, {t.origin})"
        + (f", {', '.join(t.instead)} stood in" if t.instead else "")
        for t in each.tolerated
    ]
    yield _list("Single points of failure, as far as these traces know", singles)
    yield _list(f"Together they might hurt (at most {max_size})", larger)
    yield _list("Survived, as far as is known", tolerated)
    yield _list("Failed and yet succeeded", each.retried)


def _failures(each: ClassReport) -> Iterable[str]:
    lines = [
        f"{failure.requests:,} × {' and '.join(failure.suspects) or 'nothing in the trace'}"
        + ("; the root span says all was well" if failure.hidden else "")
        + (f"; told: {', '.join(failure.told)}" if failure.told else "")
        + f"; traces {', '.join(failure.traces)}"
        for failure in each.failures
    ]
    yield _list("Failed, and what the trace points at", lines)


def _supports(each: ClassReport) -> Iterable[str]:
    for support in each.supports:
        without = f" without {', '.join(support.failed)}" if support.failed else ""
        title = f"{counted(support.requests, 'request')} rely on{without}"
        yield _list(title, support.points or ("nothing",))


def _list(title: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li><code>{escape(line)}</code></li>" for line in lines)
    return f"<h3>{escape(title)}</h3><ul class='plain'>{items}</ul>" if items else ""
