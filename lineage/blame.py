"""Blame: which calls does a failed run's own trace point at?

An error travels from where it happened up to the root, and every span it passes fails. So the
chain of failed calls from the root downwards leads to a suspect. Where several calls of one caller
failed, most of them are beside the point: optional ones that were caught, and fallout, such as the
mail that goes wrong because there was no payment, or what a ``finally`` does. In this order:

1. What failed in good requests of the class as often (:class:`FailureRecord`), was called again
   with success, or was given up just when something beside it failed, is no suspect while anything
   else failed.
2. Failed *alternates*, seen only because something else had failed first, come before the rest: a
   fallback that failed leaves nothing to fall back on. What brought one in is to blame as well:
   both were needed, and the answer is the set.
3. Where calls are missing that every good request makes, the run was stopped there, by the last
   failure that comes before the first of them.
4. Then whatever traffic says is most harmful.
5. Then time. Two calls seldom fail in one request by chance, the first has brought the second
   about: it is to blame. Where it is not known how seldom (:data:`KNOWN`), one after which its
   caller went on to another call with success may be a nuisance of every day, and comes last. Of
   injected failures none causes another: there it is the last, for its caller made no call after
   it.

Blame proposes; only an experiment confirms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ldfi.lineage.evidence import doubted, failures, walk
from ldfi.lineage.outcome import given_up
from ldfi.lineage.tree import Call, Tree

KNOWN: Final = 20
"""Good requests that show which failures are common."""
AT_ONCE: Final = 50_000_000
"""Nanoseconds within which a caller ends the calls beside one that failed. Of the two spans either
may end first."""


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """What a class of requests has shown of its calls."""

    survived: Mapping[str, int] = field(default_factory=dict)
    """Failure (``kind@point``) → good requests in which it happened and no retry saved it."""
    fatal: Mapping[str, int] = field(default_factory=dict)
    """Point → failed requests in which nothing else failed."""
    always: Sequence[str] = ()
    """Points that every good request calls, in the order in which it does."""
    good: int = 0
    """Good requests that were seen."""

    def harmless(self, call: Call) -> bool:
        """Return whether this failure was seen in good requests as often as alone in failed
        ones."""
        survived = self.survived.get(f"{call.failure}@{call.point}", 0)
        return survived > 0 and survived >= self.fatal.get(call.point, 0)

    def harm(self, call: Call) -> float:
        """Estimate the probability that a request is lost with this failure; 0.5: who knows."""
        survived = self.survived.get(f"{call.failure}@{call.point}", 0)
        fatal = self.fatal.get(call.point, 0)
        return (fatal + 1) / (fatal + survived + 2)


NOTHING_KNOWN = FailureRecord()


def blame(
    tree: Tree, base_support: Collection[str], record: FailureRecord = NOTHING_KNOWN
) -> tuple[str, ...]:
    """Find the suspects of a failed run, first the one that failed first; none where no chain of
    errors reaches the root.

    ``base_support``: the points that the class's unperturbed requests rely on; whatever is not
    among them is an alternate. ``record``: what its other requests have shown.
    """
    if not tree.failed:
        return ()
    called = {call.point for call in walk(tree.calls)}
    place = {point: number for number, point in enumerate(record.always)}
    stop = next((place[point] for point in record.always if point not in called), len(place))
    search = _Search(frozenset(base_support), record, place, stop)
    found: dict[str, Call] = {}
    pending = [(tree.calls, tree.end)]
    while pending:
        siblings, end = pending.pop()
        for culprit in search.culprits(siblings, end):
            if failures(culprit.calls):
                pending.append((culprit.calls, culprit.end))
            elif culprit.point not in found or culprit.end < found[culprit.point].end:
                found[culprit.point] = culprit
    named = tuple(call.point for call in sorted(found.values(), key=_by_end))
    return named or tuple(sorted(doubted(tree)))


@dataclass(frozen=True, slots=True)
class _Search:
    base: frozenset[str]
    record: FailureRecord
    place: Mapping[str, int]
    """Of the points that every good request calls, in their order."""
    stop: int
    """The place of the first of them that was not called."""

    def culprits(self, siblings: Sequence[Call], until: int) -> list[Call]:
        """Find the failed call whose error travelled on, with what brought it in.

        Where alternates failed, whatever they stood in for had no replacement left: each of them
        is suspected, since calls made side by side do not show whose failure was the one too many.
        """
        left = failures(siblings)
        left = [call for call in left if call.end <= until] or left
        left = [call for call in left if not _again(call, siblings)] or left
        left = [call for call in left if not _given_up(call, left)] or left
        left = [call for call in left if not self.record.harmless(call)] or left
        chain = [c for c in left if self._forerunner(siblings, c)] or self._one(left, siblings)
        for call in chain:  # grows: an alternate may have been brought in by another one
            chain += [c for c in self._forerunner(siblings, call) if c not in chain]
        return chain

    def _forerunner(self, siblings: Sequence[Call], alternate: Call) -> list[Call]:
        """Find the failure that brought an alternate in, among those that ended before it began;
        of such as were often survived, for lack of better ones, the latest. None of what is no
        alternate."""
        if not self._stands_in(alternate):
            return []
        failed = failures(siblings)
        before = [
            call
            for call in failed
            if call.end <= alternate.start
            and call.point != alternate.point
            and not _again(call, siblings)
            and not _given_up(call, failed)
        ]
        harmful = [call for call in before if not self.record.harmless(call)]
        return self._one(harmful, before) if harmful else sorted(before, key=_by_end)[-1:]

    def _stands_in(self, call: Call) -> bool:
        return bool(self.base) and call.point not in self.base

    def _one(self, left: Sequence[Call], siblings: Sequence[Call]) -> list[Call]:
        """Choose one of several failures, none of which stood in for another."""
        if len(left) < 2:
            return list(left)
        injected = [call for call in left if _fired(call)]
        left = self._before_the_stop(injected or left)
        worst = max(map(self.record.harm, left))
        left = [call for call in left if self.record.harm(call) == worst]
        if injected:
            latest = max(call.start for call in siblings if not call.detached)
            return [max([c for c in left if latest <= c.end] or left, key=_by_end)]
        if self.record.good < KNOWN:
            left = [call for call in left if not self._went_on(call, siblings)] or left
        return [min(left, key=_by_end)]

    def _before_the_stop(self, left: Sequence[Call]) -> Sequence[Call]:
        """Keep the last failure before the first call that is missing, as good requests go; all of
        them, where none is missing."""
        if self.stop == len(self.place):
            return left
        before = [call for call in left if self.place.get(call.point, self.stop) < self.stop]
        if before:
            return [max(before, key=_by_end)]
        return [call for call in left if call.point not in self.place] or left

    def _went_on(self, failed: Call, siblings: Iterable[Call]) -> bool:
        """Return whether its caller made another call after a failure, none that stands in, with
        success."""
        return any(
            call.start >= failed.end
            and not call.failed
            and not call.detached
            and not self._stands_in(call)
            for call in siblings
        )


def _again(failed: Call, siblings: Iterable[Call]) -> bool:
    """Return whether a failed call was made again with success."""
    return any(
        call.point == failed.point and not call.failed and call.start >= failed.end
        for call in siblings
    )


def _given_up(call: Call, failed: Iterable[Call]) -> bool:
    """Return whether its caller ended a call because another one, at work beside it, had failed."""
    return given_up(call.failure) and any(
        abs(other.end - call.end) <= AT_ONCE
        and other.start < call.end
        and call.start < other.end
        and not given_up(other.failure)
        for other in failed
    )


def _fired(call: Call) -> bool:
    """Return whether something that was injected into a failed call, or below, made it fail."""
    pending = [call]
    for each in pending:  # grows while we walk
        if each.fired:
            return True
        pending.extend(failures(each.calls))
    return False


def _by_end(call: Call) -> tuple[int, int, str]:
    return (call.end, call.start, call.point)
