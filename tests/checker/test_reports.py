"""What a record says of who was heard of, and of who asks seldom, is held against its verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ldfi.checker.record import Arms, BothReports, Reports, Rested, RunRecord
from ldfi.checker.statistics import JudgingRule, weigh
from ldfi.checker.verdict_check import wrong
from ldfi.checker.verdict_meaning import Meaning, Required, lacking

RULE = JudgingRule("sequential", 0.001, 0.05, 0.15, 10, 10.0)


def a_record(order: str, enrolled: int, *, controls: int = 0, **more: object) -> RunRecord:
    """Nobody failed; so many treated devices were let in, and so many more in control than said."""
    evidence = weigh(RULE, order, stands=False)
    control, treated = order.count("c"), order.count("t")
    reports = BothReports(
        Reports(control + controls, control, control, control),
        Reports(enrolled, treated, treated, treated),
    )
    record = RunRecord(
        experiment="e1",
        request_class="GET /",
        version=1,
        number=1,
        purpose="explore",
        hypothesis=("error@a",),
        faults=("error@a",),
        state="decided",
        verdict="tolerated",
        overruled=None,
        reason="evidence",
        began=1.0,
        ended=2.0,
        rule=RULE,
        own=0.001,
        level=None,
        slot="alone",
        opening=None,
        order=order,
        looks=None,
        arms=Arms(control, 0, treated, 0),
        worse=evidence.worse,
        not_worse=evidence.not_worse,
        fired=("error@a",),
        relied_on=(),
        degraded=False,
        traces=Rested.on([(f"{n:032x}", each, "0" * 64) for n, each in enumerate(order)]),
        reports=reports,
        held=20.0,
        followed=0.0,
    )
    return replace(record, **more)  # type: ignore[arg-type]


ENOUGH = "cccccccccct" * 90
TENTH = "o" * (len(ENOUGH) // 2) + "s" * (len(ENOUGH) // 2)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (a_record(ENOUGH, 90), ""),
        (a_record(ENOUGH, 91), ""),
        (a_record(ENOUGH, 100, controls=100), ""),
        (a_record(ENOUGH, 120, controls=100), "30 of 120 treated devices were never heard of"),
        (a_record(ENOUGH, 130), "40 of 130 treated devices were never heard of"),
        (a_record(ENOUGH, 89), "its reports of treatment"),
        (a_record(ENOUGH, 90, seldom=TENTH), ""),
        (a_record(ENOUGH, 90, seldom="o" * len(ENOUGH)), "by those that ask seldom alone"),
        (a_record(ENOUGH, 90, seldom="s"), "who asks seldom does not fit"),
    ],
)
def test_a_verdict_follows_from_who_was_heard_of(record: RunRecord, said: str) -> None:
    found = list(wrong(record))
    assert bool(found) == bool(said)
    assert all(said in each for each in found)
    again = RunRecord.from_json(record.to_json())
    assert again == record


def test_earlier_records_say_nothing_of_it_and_are_written_as_they_were() -> None:
    stood = weigh(RULE, ENOUGH, stands=True)
    record = replace(
        a_record(ENOUGH, 90),
        reports=None,
        held=None,
        followed=None,
        worse=stood.worse,
        not_worse=stood.not_worse,
    )
    assert not {"reports", "held", "seldom"} & set(record.to_json())
    assert RunRecord.from_json(record.to_json()).leaf == record.leaf
    assert list(wrong(record)) == []


def test_a_missing_figure_is_named_where_it_is_asked_for() -> None:
    certificate = {
        "evidence": [{"origin": "injected", "good": True}] * 2,
        "axioms": {"monotone": False},
    }
    whole, old = a_record(ENOUGH, 100, controls=100), a_record(ENOUGH, 90, reports=None, held=None)
    told = Meaning.of(certificate, [whole, old])
    assert told.heard == pytest.approx(0.9)
    assert told.patience == 20.0
    assert list(lacking(told, Required())) == []
    said = list(lacking(told, Required(heard=0.95, patience=30)))
    assert said == [
        "1 experiments do not say their share of reports heard, and 0.95 is asked for",
        "its share of reports heard is 0.9, and 0.95 is asked for",
        "1 experiments do not say their patience in seconds, and 30 is asked for",
        "its patience in seconds is 20, and 30 is asked for",
    ]
    better = Meaning.of(certificate, [whole, whole])
    assert list(lacking(better, Required(heard=0.9, patience=20))) == []
    assert list(lacking(Meaning.of(certificate, [whole]), Required(heard=0.5))) != []
