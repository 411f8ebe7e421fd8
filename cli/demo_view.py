"""What a person sees of the demo while it runs: the traffic, each verdict, and what is left."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from rich.text import Text

from ldfi.analysis.words import listed
from ldfi.fit.protocol.faults import DOWN
from ldfi.fit.protocol.kinds import spoken
from ldfi.fit.protocol.points import Point

WIDTH: Final = 80
"""Columns of a terminal that every line fits into."""

NAMES: Final = 3
"""Names that a verdict tells of the faults that were tried together."""

BAR: Final = 20

STOPPED: Final = "stopped at the first failure"
"""How the reason begins of an experiment with too many faults for a finding that has hurt."""

_VERDICTS: Final = {
    "harmful": ("HURTS", "bold red"),
    "tolerated": ("survived", "green"),
    "inconclusive": ("undecided", "yellow"),
}
_KINDS: Final = spoken("short") | {"down": "down"}


def traffic_line(good: dict[str, int], needed: int, seconds: float) -> Text:
    """Draw how far watching traffic is. ``good``: requests that went well, by class."""
    name, least = max(good.items(), key=lambda each: each[1]) if good else ("", 0)
    done = min(least, needed)
    of = f" of {name}" if name else ""
    drawn = Text("  watching traffic  ")
    drawn.append("█" * (BAR * done // needed), "green")
    drawn.append("░" * (BAR - BAR * done // needed), "dim")
    said = f"  {done} of {needed} requests{of}"
    room = WIDTH - len(drawn) - 7
    return drawn.append(f"{said:<{room}}").append(f"{seconds:5.0f} s", "dim")


def tried(faults: Collection[str], shared: Collection[str] = ()) -> str:
    """Say ``layout refused`` or ``offers and prices refused together``; three names at most.

    ``shared``: systems that are asked several things, of which it is said which one. What a system
    that is down takes with it is not named as well.
    """
    down = {each.removeprefix(DOWN) for each in faults if each.startswith(DOWN)}
    by_kind: dict[str, list[str]] = {}
    for fault in faults:
        kind, _, where = fault.partition("@")
        read = Point.parse(where)
        if fault.startswith(DOWN):
            name = where
        elif read.peer in down:
            continue
        else:
            asked = read.template if read.peer in shared else ""
            name = f"{read.peer or read.operation}{asked}"
        by_kind.setdefault(_KINDS.get(kind, kind), []).append(name)
    named = [
        (kind, name)
        for kind in sorted(by_kind, key="down".__eq__)
        for name in sorted(by_kind[kind])
    ]
    parts = [
        f"{listed(name for other, name in named[:NAMES] if other == kind)} {kind}"
        for kind in dict.fromkeys(kind for kind, _ in named[:NAMES])
    ]
    more = [f"{len(named) - NAMES} more"] if len(named) > NAMES else []
    said = listed([*parts, *more])
    return f"{said} together" if len(named) > 1 else said


def verdict_line(experiment: dict[str, Any], began: float, shared: Collection[str] = ()) -> Text:
    """Show what was tried on which class, and what came of it. ``began``: when traffic did (Unix
    seconds). ``shared``: as :func:`tried` has it."""
    word, style = _VERDICTS.get(experiment["verdict"] or "", ("called off", "yellow"))
    if experiment["reason"].startswith(STOPPED):
        word, style = "hurt one", "red"
    line = Text(f"  {experiment['request_class']:<13} ").append(f"{word:<9}  ", style)
    when = f"{experiment['ended_at'] - began:5.0f} s"
    room = WIDTH - len(line) - len(when)
    what = tried(experiment["hypothesis"], shared)
    again = " again" if experiment["purpose"] in {"confirm", "verify", "repeat"} else ""
    fits = (f"{what}{again}{how}" for how in _how(experiment))
    said = next((each for each in fits if len(each) <= room), what[: room - 1] + "…")
    return line.append(f"{said:<{room}}").append(when, "dim")


def _how(experiment: dict[str, Any]) -> list[str]:
    """Say how the devices fared, at length first and last not at all."""
    if experiment["verdict"] not in {"harmful", "tolerated"}:
        known = experiment["reason"] and not experiment["reason"].startswith(STOPPED)
        reason = experiment["reason"].partition(";")[0]
        return [f" ({reason})", ""] if known else [""]
    treated, beside = (experiment["counts"][arm] for arm in ("treatment", "control"))
    of, others = treated["devices"], beside["devices"]
    if experiment["verdict"] == "harmful":
        how = f"{treated['failures']} of {of} failed"
        bystanders = f"{beside['failures']} of {others} beside"
    else:
        how = f"{of - treated['failures']} of {of} devices fine"
        bystanders = f"{others - beside['failures']} beside"
    short = how.replace(" devices", "")
    return [
        f" ({how}, {bystanders} them)",
        f" ({short}, {bystanders} them)",
        f" ({short}, {bystanders})",
        f" ({short})",
        "",
    ]


def foot(campaign: dict[str, Any], ended: int, shared: Collection[str] = ()) -> Text:
    """Say what is tried just now, and how much is left. ``shared``: as :func:`tried` has it."""
    now = [
        f"{each['name']}: {tried(each['running']['hypothesis'], shared)}"
        for each in campaign["classes"]
        if each["running"]
    ]
    left = sum(each["open"] for each in campaign["classes"])
    said = f"  {ended} tried, {left} left"
    room = WIDTH - len(said)
    trying = f"; now {', '.join(now)}" if now else ""
    return Text(said + (trying if len(trying) <= room else trying[: room - 2] + " …"), "dim")


def missing(campaign: dict[str, Any], needed: int, good: dict[str, int]) -> list[str]:
    """Say what a campaign that was stopped has left undecided, class by class."""
    if not campaign["classes"]:
        short = [f"{name} had {min(n, needed)} of {needed}" for name, n in sorted(good.items())]
        return [f"Too few requests went well to begin: {listed(short) or 'none was seen'}."]
    left = [f"{each['open']} on {each['name']}" for each in campaign["classes"] if each["open"]]
    not_begun = [f"{name} ({why})" for name, why in campaign["not_yet"].items()]
    lines = [f"Combinations left to try: {listed(left)}."] if left else []
    return lines + ([f"Not begun: {listed(not_begun)}."] if not_begun else [])


def sentences(result: dict[str, Any]) -> list[Text]:
    """Say what was found, of what was planted; what it took; and how many it hurt."""
    rows: Sequence[dict[str, Any]] = result["comparison"]
    found = [each for each in rows if each["found"]]
    planted = [each for each in rows if each["weakness"]]
    right = [each for each in found if each["weakness"]]
    count = f"{len(found)} weakness{'es' if len(found) != 1 else ''} found"
    if result["matched"]:
        first = Text(f"{count}, exactly the {len(planted)} planted.", "green")
    else:
        first = Text(f"{count}, {len(right)} of the {len(planted)} planted.", "bold red")
    if lacking := [each["weakness"] for each in planted if not each["found"]]:
        first.append(f" Not found: {listed(lacking)}.", "default")
    tried_ = f"{result['experiments']} experiments in {result['seconds']:.0f} s."
    devices = result["devices"]
    hurt = f"{devices['reached']} devices met a failure, {devices['hurt']} of them were hurt."
    return [first, Text(tried_), Text(hurt)]
