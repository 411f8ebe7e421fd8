"""What is suggested: a timeout, something to fall back on, a retry, and where."""

from __future__ import annotations

import pytest

from ldfi.analysis.repairs.breaks import breaks
from ldfi.analysis.repairs.repair import Repair, repairs
from ldfi.lineage.run_summary import Runs
from tests.analysis.repairs.runs import call, runs

TANK, SPARE = "pump>http:GET:tank/levels/*", "pump>http:GET:spare/levels/*"
GATE = "pump>db:UPDATE:sluicedb/gates"


def suggested(faults: list[str], seen: Runs) -> list[Repair]:
    return list(repairs(faults, breaks(faults, seen, {}), {}))


def missing(found: list[Repair]) -> list[str]:
    return [each.missing for each in found]


def test_who_waited_as_long_as_it_took_lacks_a_timeout() -> None:
    found = suggested([f"delay@{TANK}"], runs([call(TANK, fired="delay", took=8.0)]))
    assert missing(found) == ["timeout", "fallback"]
    assert found[0].said == (
        "Give pump's call to tank (GET /levels/*) a timeout shorter than users wait, and have pump"
        " go on without the answer."
    )
    assert found[0].why == "pump waited 8.0 s for tank: no timeout ended it."


def test_a_body_that_trickles_wants_a_timeout_for_all_of_it() -> None:
    found = suggested([f"slow:8@{TANK}"], runs([call(TANK, fired="slow", took=0.0)]))
    assert missing(found) == ["timeout", "fallback"]
    assert "a timeout for all of its answer shorter than users wait" in found[0].said
    assert found[0].why == (
        "The answer of tank began at once and went on slowly: a timeout that starts anew with each"
        " piece does not end that."
    )
    gave_up = runs([call(TANK, failed=True, fired="slow", took=2.0)])
    (found_then,) = suggested([f"slow:8@{TANK}"], gave_up)
    assert found_then.why == "pump gave up on tank after 2.0 s, with nothing instead."


def test_who_gave_up_lacks_something_instead() -> None:
    found = suggested([f"delay@{TANK}"], runs([call(TANK, failed=True, fired="delay", took=2.0)]))
    assert missing(found) == ["fallback"]
    assert found[0].why == "pump gave up on tank after 2.0 s, with nothing instead."


def test_one_try_may_be_too_few_and_more_did_not_help() -> None:
    once = suggested([f"refused@{TANK}"], runs([call(TANK, failed=True, fired="refused")]))
    assert missing(once) == ["fallback", "retry"]
    assert once[0].said == (
        "Have pump cope without tank: serve what it last knew, a default, or an answer that lacks"
        " this part."
    )
    thrice = runs([call(TANK, failed=True, fired="refused")] * 3)
    (found,) = suggested([f"refused@{TANK}"], thrice)
    assert found.why == "It was tried 3 times, and each time failed: nothing stands in for it."


def test_a_stand_in_needs_one_as_well() -> None:
    both = [call(TANK, failed=True, fired="error"), call(SPARE, failed=True, fired="error")]
    found = suggested([f"error@{TANK}", f"error@{SPARE}"], runs(both, [TANK]))[0]
    assert found.why == "spare stands in for tank, and nothing for spare."
    assert found.point == SPARE
    independent = suggested([f"error@{TANK}", f"error@{SPARE}"], runs(both, [TANK, SPARE]))[0]
    assert independent.why == "Nothing is left when tank and spare fail together; less is survived."


def test_what_is_written_cannot_be_what_was_last_known() -> None:
    found = suggested([f"error@{GATE}"], runs([call(GATE, failed=True, fired="error")]))[0]
    assert "keep what is to be written and write it later" in found.said


@pytest.mark.parametrize("kind", ["sql:deadlock", "sql:serialization"])
def test_a_conflict_of_transactions_wants_another_begin(kind: str) -> None:
    found = suggested([f"{kind}@{GATE}"], runs([call(GATE, failed=True, fired=kind)]))
    assert missing(found) == ["retry", "fallback"]
    assert found[0].said.startswith(
        "Have pump begin the transaction around pump's query to sluicedb"
    )


def test_a_system_behind_several_calls_is_named() -> None:
    both = [call(TANK, failed=True, fired="error", callee="tank"),
            call(SPARE, failed=True, fired="error", callee="spare")]  # fmt: skip
    found = suggested(["down@levelsdb"], runs(both, [TANK, SPARE]))[0]
    assert found.why == "levelsdb is behind spare and tank: they fail together."


def test_each_caller_that_lets_it_through_could_mend_it() -> None:
    inner = "lock>http:GET:gauge/x"
    faults = [f"error@{inner}", f"error@{TANK}"]
    seen = runs([call("pump>http:GET:lock/x"), call(inner, within=0, failed=True, fired="error"),
                 call(TANK, failed=True, fired="error")])  # fmt: skip
    found = [each for each in suggested(faults, seen) if each.missing == "fallback"]
    assert [each.service for each in found] == ["lock", "pump"]
    assert found[0].why == "Nothing stands in for gauge at the same time."


def test_the_code_is_where_spans_say_that_it_is() -> None:
    seen = runs([call(TANK, failed=True, fired="error", code="src/pump.py:41 (fill)")])
    assert {each.code for each in suggested([f"error@{TANK}"], seen)} == {"src/pump.py:41 (fill)"}


def test_without_a_request_a_retry_is_no_guess_of_ours() -> None:
    assert missing(suggested([f"refused@{TANK}"], Runs())) == ["fallback"]
    assert suggested(["down@levelsdb"], Runs()) == []
