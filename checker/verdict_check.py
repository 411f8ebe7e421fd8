"""Whether a record's verdict follows from what it says was seen. No key is needed for that."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ldfi.checker.outcome import AnyRecord, OutcomeRecord
from ldfi.checker.record import Arms, BothReports, RunRecord
from ldfi.checker.statistics import (
    CLOSE,
    CONTROL,
    TREATED,
    Weighed,
    failed_of,
    heard_and_well,
    level,
    threshold,
    weigh,
    weigh_looks,
)


def wrong(record: AnyRecord) -> Iterator[str]:
    """Return what in a record contradicts the rest of it."""
    if isinstance(record, OutcomeRecord):
        yield from record.wrong()
        return
    if record.began > record.ended:
        yield "it ended before it began"
    if (record.state == "decided") != (record.verdict is not None):
        yield "it has a verdict and is not decided, or none and is"
    if (record.order is None) == (record.looks is None):
        yield "it must have an order or looks, and not both"
        return
    counted = counts(record)
    if counted != record.arms:
        yield f"its arms are {record.arms.to_json()}, its outcomes say {counted.to_json()}"
    if record.order is not None and record.traces.count != len(record.order):
        yield f"{len(record.order)} outcomes cannot rest on {record.traces.count} traces"
    found = level(record.own, record.level, record.slot, record.opening)
    if not math.isclose(found, record.rule.alpha, rel_tol=1e-9):
        yield f"its α is {record.rule.alpha:g}, by its level it is {found:g}"
    yield from _verdict(record)
    if record.reports is not None:
        yield from _reports(record, record.reports)
    if record.seldom is not None:
        yield from _seldom(record, record.seldom)


def _reports(record: RunRecord, reports: BothReports) -> Iterator[str]:
    """Return where the reports contradict the counts, or do not suffice for *tolerated*."""
    arms = record.arms
    for name, total, failed, each in (
        ("control", arms.control, arms.control_failed, reports.control),
        ("treatment", arms.treated, arms.treated_failed, reports.treatment),
    ):
        fits = each.well <= each.reached <= min(total, each.heard) and each.heard <= each.enrolled
        if not fits or each.reached - each.well > failed or each.well > total - failed:
            yield f"its reports of {name} are {each.to_json()}, which its outcomes do not bear out"
    if record.verdict != "tolerated" or not reports.treatment.silent:
        return
    evidence = heard_and_well(record.rule.delta, reports.look)
    if evidence < -math.log(record.rule.alpha_tolerated) - CLOSE:
        yield (
            f"it is tolerated, but {reports.treatment.silent} of {reports.treatment.enrolled} "
            "treated devices were never heard of, which is too many for it"
        )


def _seldom(record: RunRecord, seldom: str) -> Iterator[str]:
    """Return where those that ask seldom do not make it *tolerated* by themselves."""
    order = record.order or ""
    if len(seldom) != len(order) or not set(seldom) <= {"s", "o"}:
        yield "who asks seldom does not fit to its outcomes"
    elif record.verdict == "tolerated":
        theirs = "".join(each for each, who in zip(order, seldom, strict=True) if who == "s")
        part = replace(record, order=theirs)
        said = (
            {threshold(record.rule, _treated(part))}
            if record.rule.name == "threshold"
            else _weighed(part)[0]
        )
        if "tolerated" not in said:
            yield "it is tolerated, and by those that ask seldom alone it is not"


def counts(record: RunRecord) -> Arms:
    """Count the outcomes of both arms: a device that failed while it took part has failed."""
    if record.looks is not None:
        return Arms(*(sum(look[place] for look in record.looks) for place in range(4)))
    order = failed_of(record.order or "", stays=True)
    control, treated = (sum(map(order.count, letters)) for letters in (CONTROL, TREATED))
    return Arms(control, order.count("C"), treated, order.count("T"))


def _verdict(record: RunRecord) -> Iterator[str]:
    if record.rule.name == "threshold":
        said, evidence = {threshold(record.rule, _treated(record))}, Weighed(record.rule)
    else:
        said, evidence = _weighed(record)
    for name, mine, its in (
        ("worse", evidence.worse, record.worse),
        ("not worse", evidence.not_worse, record.not_worse),
    ):
        if abs(mine - its) > CLOSE * max(1.0, abs(mine)):
            yield f"its evidence of {name} is e^{its:.6f}, its outcomes give e^{mine:.6f}"
    if record.verdict is None:
        return
    if record.overruled is not None:
        must = _overruled(record)
        if record.verdict not in must:
            words = " or ".join(must)
            yield f"it is {record.verdict}, but {record.overruled} makes it {words}"
    elif record.verdict not in said:
        yield f"it is {record.verdict}, its outcomes say {' or '.join(sorted(said))}"


def _overruled(record: RunRecord) -> tuple[str, ...]:
    """Return the verdicts that may differ from what the tests say, with their reason.

    Nothing but the tests makes it harmful. By an earlier rule bystanders who were hurt did, in a
    second slot or where one slot was all that was asked for; such records stay what they are.
    """
    earlier = record.overruled == "bystanders" and record.slot != "first"
    return ("inconclusive", "harmful") if earlier else ("inconclusive",)


def _weighed(record: RunRecord) -> tuple[set[str], Weighed]:
    """Return the verdicts that may be said, and the evidence."""
    stands = record.followed is None
    if record.looks is not None:
        found = weigh_looks(record.rule, record.looks, stands=stands)
    elif record.followed:
        return _followed(record)
    else:
        found = weigh(record.rule, record.order or "", stands=stands)
    return found.verdicts(), found


def _followed(record: RunRecord) -> tuple[set[str], Weighed]:
    """Do the same where devices were followed: one test of first requests, one of all that devices
    did while they took part. They share α; either makes it harmful, and tolerated takes both."""
    half = replace(record.rule, alpha=record.rule.alpha / 2)
    first, stays = (
        weigh(half, failed_of(record.order or "", stays=each)) for each in (False, True)
    )
    worse = first.worse if first.says() == "harmful" else max(first.worse, stays.worse)
    said = {_both(one, other) for one in first.verdicts() for other in stays.verdicts()}
    evidence = Weighed(record.rule, worse - math.log(2), min(first.not_worse, stays.not_worse))
    return said, evidence


def _both(first: str, stays: str) -> str:
    if "harmful" in {first, stays}:
        return "harmful"
    return first if first == stays else "inconclusive"


def _treated(record: RunRecord) -> Iterator[tuple[int, int]]:
    if record.looks is not None:
        yield from ((look[2], look[3]) for look in record.looks)
    else:
        proving = (letter for letter in record.order or "" if letter in TREATED - {"u", "v"})
        yield from ((1, letter == "T") for letter in proving)
