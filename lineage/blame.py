"""Blame: which calls does a failed run's own trace point at?

An error travels from where it happened up to the root, and every span it passes fails. So the
chain of failed calls from the root downwards leads to a suspect. Calls beside the chain whose
failure somebody caught are not to blame. Where the suspect (or a call on the way to it) is an
*alternate*, seen only because something else had failed first, that something is to blame too:
both were needed, and the answer is the set. Among calls made side by side, failed alternates come
before anything else: a fallback that failed leaves nothing to fall back on.

Blame proposes; only an experiment convicts.
"""

from __future__ import annotations

from collections.abc import Collection

from ldfi.lineage.evidence import doubted
from ldfi.lineage.tree import Call, Tree


def blame(tree: Tree, base_support: Collection[str]) -> frozenset[str]:
    """Find the suspects of a failed run; none where no chain of errors reaches the root.

    ``base_support``: the points that the class's unperturbed requests rely on; whatever is not
    among them is an alternate.
    """
    if not tree.failed:
        return frozenset()
    return frozenset(_suspects(tree.calls, tree.end, frozenset(base_support))) or doubted(tree)


def _suspects(calls: tuple[Call, ...], until: int, base: frozenset[str]) -> set[str]:
    found: set[str] = set()
    pending = [(calls, until)]
    while pending:
        siblings, end = pending.pop()
        for culprit in _culprits(siblings, end, base):
            if any(call.failed and not call.detached for call in culprit.calls):
                pending.append((culprit.calls, culprit.end))
            else:
                found.add(culprit.point)
    return found


def _culprits(siblings: tuple[Call, ...], until: int, base: frozenset[str]) -> list[Call]:
    """Find the failed call whose error travelled on, with what brought it in.

    Where alternates failed, whatever they stood in for had no replacement left: each of them is
    suspected, since calls made side by side do not show whose failure was the one too many.
    """
    failed = [call for call in siblings if call.failed and not call.detached]
    alternates = [call for call in failed if call.point not in base]
    last = _culprit(siblings, until)
    chain = alternates or ([last] if last else [])
    for call in chain:  # grows: an alternate may have been brought in by another one
        before = None if call.point in base else _forerunner(siblings, call)
        if before is not None and before not in chain:
            chain.append(before)
    return chain


def _culprit(siblings: tuple[Call, ...], until: int) -> Call | None:
    """Find the failed call whose error travelled on: the last to end while its caller still ran.

    A failure after which the caller made another call was probably caught, so it comes last.
    """
    candidates = [call for call in siblings if call.failed and not call.detached]
    in_time = [call for call in candidates if call.end <= until] or candidates
    latest = max((call.start for call in siblings if not call.detached), default=0)
    final = [call for call in in_time if latest <= call.end]
    return max(final or in_time, key=_by_end, default=None)


def _forerunner(siblings: tuple[Call, ...], alternate: Call) -> Call | None:
    """Find the failure that brought an alternate in: the latest that ended before it began."""
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
