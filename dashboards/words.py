"""How templates say times, shares and names: their filters.

Times are written in UTC, with 24 hours and as the command line has them, and a script puts them in
the viewer's zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from markupsafe import Markup

from ldfi.analysis.words import happens
from ldfi.dashboards.roles import SAID

_PARTS: Final = re.compile(r"[^@>:/]*[@>:/]+|[^@>:/]+")
_TYPED: Final = re.compile(r"`([^`\n]+)`")
_RAISED: Final = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_MINUTE: Final = "%Y-%m-%d %H:%M"


def moment(at: float | None) -> Markup:
    """Show a time (Unix seconds) to the minute."""
    return _time(at, _MINUTE, "minute")


def clock(at: float | None) -> Markup:
    """Show the time of day (Unix seconds) to the minute, where the day goes without saying."""
    return _time(at, "%H:%M", "clock")


def second(at: float | None) -> Markup:
    """Show a time (Unix seconds) to the second."""
    return _time(at, f"{_MINUTE}:%S", "second")


def ago(at: float | None) -> Markup:
    """Show a time (Unix seconds); with the script, how long ago that is."""
    return _time(at, _MINUTE, "ago")


def _time(at: float | None, form: str, show: str) -> Markup:
    if at is None:
        return Markup("–")
    try:
        when = datetime.fromtimestamp(at, UTC)
    except (OverflowError, ValueError, OSError):
        return Markup("–")
    return Markup('<time datetime="{}" data-show="{}">{} UTC</time>').format(
        when.strftime("%Y-%m-%dT%H:%M:%SZ"), show, when.strftime(form)
    )


def duration(seconds: float) -> str:
    """Say a length of time, in its two largest units."""
    left = round(seconds)
    parts = []
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def age(seconds: float) -> str:
    """Say how old something is, in its largest unit: ``3 days``."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        count = int(seconds // size)
        if count > 0:
            return f"{count:,} {unit}{'' if count == 1 else 's'}"
    return "moments"


def took(seconds: float) -> str:
    """Say how long one request or call took, or an experiment: to three digits."""
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 100 else duration(seconds)


def power(exponent: float) -> str:
    """Write ten to the power of this, for evidence: what matters is how many digits it has."""
    if exponent < 2:
        return f"{10**exponent:.2g}"
    if exponent < 7:
        return f"{float(f'{10**exponent:.2g}'):,.0f}"
    return "about 10" + "".join(_RAISED[int(digit)] for digit in f"{exponent:.0f}")


def number(value: float) -> str:
    """Write a number with its thousands told apart."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def share(value: float) -> str:
    """Write a share between 0 and 1 as per cent."""
    percent = 100 * value
    return f"{percent:.0f} %" if percent in {0, 100} else f"{percent:.3g} %"


def breakable(text: str) -> Markup:
    """Break a long name where its parts end, if need be."""
    return Markup("<wbr>").join(_PARTS.findall(text))


def typed(text: str) -> Markup:
    """Show what is to be typed, between backticks, as code; break long names in the rest."""
    return Markup("").join(
        Markup("<code>{}</code>").format(breakable(part)) if place % 2 else breakable(part)
        for place, part in enumerate(_TYPED.split(text))
    )


def fault(text: str) -> str:
    """Say a fault or another variable of the solver in words."""
    kind, at, where = text.partition("@")
    said = "is down" if kind == "down" else happens(kind)
    return f"{where} {said}" if at and said != kind else text


def failures_at_once(size: int) -> str:
    """Say how many failures each of some hypotheses has: ``with two failures at once``."""
    if size == 1:
        return "with one failure"
    words = {2: "two", 3: "three", 4: "four"}
    return f"with {words.get(size, size)} failures at once"


def standing(text: str) -> str:
    """Say what part a point plays, or what became of it in a run."""
    return SAID.get(text) or text.replace("-", " ")


def capitalised(text: str) -> str:
    """Begin a sentence: the first letter is a capital, the others stay as they are."""
    return text[:1].upper() + text[1:]


def devices(count: int) -> str:
    """Say how many devices."""
    return "1 device" if count == 1 else f"{count:,} devices"


def listed(words: Iterable[str]) -> str:
    """Join words as ``a``, ``a and b``, ``a, b and c``."""
    *first, last = [*words] or ["nothing"]
    return f"{', '.join(first)} and {last}" if first else last


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "moment": moment,
    "clock": clock,
    "second": second,
    "ago": ago,
    "duration": duration,
    "age": age,
    "took": took,
    "power": power,
    "number": number,
    "share": share,
    "fault": fault,
    "breakable": breakable,
    "typed": typed,
    "failures_at_once": failures_at_once,
    "listed": listed,
    "standing": standing,
    "capitalised": capitalised,
}
