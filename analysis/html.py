"""An analysis as one web page that needs nothing from anywhere: to be sent, kept, printed.

It says what the terminal says, in the same words, and holds the exact names behind what it says.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ldfi.analysis.exact import exact
from ldfi.analysis.picture import MEANINGS, picture
from ldfi.analysis.report import Analysis
from ldfi.analysis.style import POLICY, STYLE
from ldfi.analysis.summary import LostWith, RedItem, Summary
from ldfi.analysis.words import counted


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
