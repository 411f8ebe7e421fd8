"""What is missing where a failure gets through: a timeout, something to fall back on, a retry.

A suggestion, read from one failed request; whoever knows the code decides. The first one given
would mend the finding, by what was seen. Only an experiment can say that it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ldfi.analysis.phrases import said_callee, said_point
from ldfi.analysis.repairs.breaks import Break
from ldfi.analysis.words import counted, listed
from ldfi.fit.protocol.faults import DOWN
from ldfi.fit.protocol.kinds import family, outlasted, words_with
from ldfi.fit.protocol.points import Point

Lacking = Literal["timeout", "fallback", "retry"]

PASSING: Final = words_with("passes")
"""Kinds of failure that often pass in a moment."""

TRANSACTION: Final = ("sql:deadlock", "sql:serialization")
"""Failures that PostgreSQL means to be answered by beginning the transaction again
(https://www.postgresql.org/docs/current/mvcc-serialization-failure-handling.html)."""

_WRITING: Final = frozenset({"PUT", "PATCH", "DELETE", "INSERT", "UPDATE", "SET", "send"})
_TWICE: Final = frozenset({"POST", "PATCH", "INSERT", "send"})
"""Operations that may do something once more when they are asked once more."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What ``service`` lacks at ``point``. ``said``: what to do; ``why``: what was seen.

    ``code``: where the call is made, as far as spans say (``code.*``).
    """

    missing: Lacking
    service: str
    point: str
    said: str
    why: str
    code: str = ""


def repairs(
    faults: Sequence[str], broken: Sequence[Break], callees: Mapping[str, str]
) -> tuple[Repair, ...]:
    """Return repairs for a finding, the most effective first; none if its callers are unknown."""
    known = [each for each in broken if each.caller != "unknown"]
    if not known:
        return ()
    names = {**callees, **{each.point: each.callee for each in broken if each.callee}}
    found = [
        *(_timeout(each, names) for each in known if _waits(each)),
        *(_transaction(each, names) for each in known if each.kind in TRANSACTION),
    ]
    found += _fallbacks(faults, known, names)
    found += [_retry(each, names) for each in known[:1] if _may_pass(each)]
    return tuple(found)


def _waits(each: Break) -> bool:
    return outlasted(each.kind) and each.tries > 0 and each.answered


def _may_pass(each: Break) -> bool:
    return each.kind.partition(":")[0] in PASSING and each.tries == 1


def _timeout(each: Break, names: Mapping[str, str]) -> Repair:
    target, whole = said_callee(each.point, names), ""
    why = f"{each.caller} waited {each.waited:.1f} s for {target}: no timeout ended it."
    if family(each.kind) == "slow":  # spans may end with the headers: nobody knows who waited
        whole = " for all of its answer"
        why = (
            f"The answer of {target} began at once and went on slowly: a timeout that starts anew"
            " with each piece does not end that."
        )
    return Repair(
        "timeout",
        each.caller,
        each.point,
        f"Give {said_point(each.point, names)} a timeout{whole} shorter than users wait, and have"
        f" {each.caller} go on without the answer.",
        why,
        each.code,
    )


def _transaction(each: Break, names: Mapping[str, str]) -> Repair:
    tried = "once" if each.tries == 1 else f"{each.tries} times" if each.tries else "and gave up"
    return Repair(
        "retry",
        each.caller,
        each.point,
        f"Have {each.caller} begin the transaction around {said_point(each.point, names)} again,"
        " a few times, after a short wait that differs each time.",
        f"A database resolves such a conflict by ending one of two; {each.caller} tried {tried}.",
        each.code,
    )


def _fallbacks(
    faults: Sequence[str], broken: Sequence[Break], names: Mapping[str, str]
) -> Iterator[Repair]:
    """Suggest a fallback for each caller; of several callers it is enough that one has it."""
    seen = set()
    for each in broken:
        if each.caller in seen:
            continue
        seen.add(each.caller)
        mine = [other for other in broken if other.caller == each.caller]
        targets = [said_callee(other.point, names, [f"@{o.point}" for o in mine]) for other in mine]
        without = targets[0] if len(mine) == 1 else f"{listed(targets)} together"
        yield Repair(
            "fallback",
            each.caller,
            mine[-1].point,
            f"Have {each.caller} cope without {without}: {_instead(mine[-1])}.",
            _why(faults, mine, targets, broken),
            mine[-1].code,
        )


def _instead(each: Break) -> str:
    if Point.parse(each.point).operation in _WRITING:
        return "keep what is to be written and write it later, or go on without"
    return "serve what it last knew, a default, or an answer that lacks this part"


def _why(
    faults: Sequence[str], mine: Sequence[Break], targets: Sequence[str], broken: Sequence[Break]
) -> str:
    down = [fault.removeprefix(DOWN) for fault in faults if fault.startswith(DOWN)]
    if down and len(broken) > 1 and len(faults) == 1:
        reached = listed(sorted({each.callee or each.point for each in broken}))
        if reached != down[0]:
            return f"{down[0]} is behind {reached}: they fail together."
        return f"{counted(len(broken), 'call')} to {down[0]} fail together."
    if len(mine) == 1:
        return _alone(mine[0], targets[0], len(broken))
    first = next((t for each, t in zip(mine, targets, strict=True) if not each.stands_in), "")
    last = [t for each, t in zip(mine, targets, strict=True) if each.stands_in]
    if first and last:
        return f"{listed(last)} stands in for {first}, and nothing for {last[-1]}."
    return f"Nothing is left when {listed(targets)} fail together; less is survived."


def _alone(each: Break, target: str, breaks: int) -> str:
    if each.tries > 1:
        return f"It was tried {each.tries} times, and each time failed: nothing stands in for it."
    if outlasted(each.kind) and each.tries and not each.answered:
        return f"{each.caller} gave up on {target} after {each.waited:.1f} s, with nothing instead."
    if each.stands_in:
        return f"{target} is what {each.caller} falls back on, and nothing stands in for it."
    more = " at the same time" if breaks > 1 else ""
    return f"Nothing stands in for {target}{more}."


def _retry(each: Break, names: Mapping[str, str]) -> Repair:
    once = " if it may be asked for twice" if Point.parse(each.point).operation in _TWICE else ""
    return Repair(
        "retry",
        each.caller,
        each.point,
        f"Try {said_point(each.point, names)} once more{once}, after a short wait.",
        "It was tried once. A second try outlasts what passes in a moment, and no outage.",
        each.code,
    )
