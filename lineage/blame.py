"""Blame: which calls does a failed run's own trace point at?

An error travels from where it happened up to the root, and every span it passes fails. So the
chain of failed calls from the root downwards leads to a suspect. Calls beside the chain whose
failure somebody caught are not to blame. Where the suspect (or a call on the way to it) is an
*alternate*, seen only because something else had failed first, that something is to blame too:
both were needed, and the answer is the set.

Blame proposes; only an experiment convicts.
"""

from __future__ import annotations

from collections.abc import Collection

from lineage.tree import Call, Tree


def blame(tree: Tree, base_support: Collection[str]) -> frozenset[str]:
    """The suspects of a failed run; empty where no chain of errors reaches the root.

    ``base_support``: the points that the class's unperturbed requests rely on; whatever is not
    among them is an alternate.
    """
    if not tree.failed:
        return frozenset()
    return frozenset(_suspects(tree.calls, tree.end, frozenset(base_support)))


def _suspects(calls: tuple[Call, ...], until: int, base: frozenset[str]) -> set[str]:
    found: set[str] = set()
    pending = [(calls, until)]
    while pending:
        siblings, end = pending.pop()
        culprit = _culprit(siblings, end)
        while culprit is not None:
            deeper = _culprit(culprit.calls, culprit.end)
            if deeper is None:
                found.add(culprit.point)
            else:
                pending.append((culprit.calls, culprit.end))
            if culprit.point in base:
                break
            culprit = _forerunner(siblings, culprit)
    return found


def _culprit(siblings: tuple[Call, ...], until: int) -> Call | None:
    """The failed call whose error travelled on: the last to end while its caller still ran.

    A failure after which the caller made another call was probably caught, so it comes last.
    """
    candidates = [call for call in siblings if call.failed and not call.detached]
    in_time = [call for call in candidates if call.end <= until] or candidates
    latest = max((call.start for call in siblings if not call.detached), default=0)
    final = [call for call in in_time if latest <= call.end]
    return max(final or in_time, key=_by_end, default=None)


def _forerunner(siblings: tuple[Call, ...], alternate: Call) -> Call | None:
    """The failure that brought an alternate in: the latest that ended before it began."""
    before = [
        call
        for call in siblings
        if call.failed
        and not call.detached
        and call.end <= alternate.start
        and call.point != alternate.point
    ]
    return max(before, key=_by_end, default=None)


def _by_end(call: Call) -> tuple[int, int, str]:
    return (call.end, call.start, call.point)
