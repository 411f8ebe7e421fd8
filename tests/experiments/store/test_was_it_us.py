"""Which experiments were armed in a window: the index's answer against looking at each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, select, text

from ldfi.experiments.domain.campaign.recording import GONE
from ldfi.experiments.domain.judging.counts import DeviceCounts
from ldfi.experiments.domain.judging.experiment import ExperimentState
from ldfi.experiments.domain.judging.sequential_tests import Verdict
from ldfi.experiments.domain.judging.was_it_us import Bunch, Exposure, Injected
from ldfi.experiments.store import Database
from ldfi.experiments.store import was_it_us as stored
from ldfi.experiments.store.schema import ExperimentRow
from tests.kit.rows import experiment_row

AT = 1_000_000.0
CLASSES = ("GET /a", "GET /b")

STEP = 700.0

times = st.integers(-40, 40).map(lambda step: AT + 100.0 * step)


COMPARISONS = st.fixed_dictionaries(
    {
        "others": st.fixed_dictionaries({"hurt": st.integers(0, 2)}),
        "control": st.fixed_dictionaries({"devices": st.just(4), "failures": st.integers(0, 4)}),
        "exposed": st.integers(3, 8),
    }
)


@st.composite
def experiments(draw: st.DrawFn) -> list[ExperimentRow]:
    """Experiments as they may stand on record: never armed, running, over, abandoned."""
    found = []
    for number in range(draw(st.integers(0, 12))):
        armed_at = draw(st.none() | times)
        took, lease = draw(st.integers(0, 12)) * 100.0, draw(st.integers(0, 12)) * 100.0
        over = armed_at is None or draw(st.booleans())
        state, verdict, reason = draw(
            st.sampled_from(
                [
                    ("decided", "harmful", "evidence"),
                    ("decided", "tolerated", "evidence"),
                    ("aborted", None, GONE),
                ]
                if over
                else [("observing", None, "")]
            )
        )
        found.append(
            experiment_row(
                f"e{number}",
                ["error@p"],
                request_class=draw(st.sampled_from(CLASSES)),
                state=state,
                verdict=verdict,
                reason=reason,
                created_at=AT,
                armed_at=armed_at,
                lease_until=None if armed_at is None else armed_at + lease,
                ended_at=(armed_at or AT) + took if over else None,
                members_reserved=9,
                members_charged=5,
                members_hurt=draw(st.integers(0, 3)),
                comparison=draw(st.none() | COMPARISONS),
            )
        )
    return found


@given(rows=experiments(), one=times, other=times, name=st.none() | st.sampled_from(CLASSES))
def test_the_index_finds_what_looking_at_each_finds(
    in_memory: Database, rows: list[ExperimentRow], one: float, other: float, name: str | None
) -> None:
    since, until = sorted((one, other))
    with in_memory.change(AT) as change:
        change.session.execute(delete(ExperimentRow))
        change.session.add_all(rows)
    with in_memory.read() as session:
        every = [stored.injected_of(row) for row in session.query(ExperimentRow) if row.armed_at]
        found = stored.injected(session, stored.within(since, until, name))
        summed = stored.exposure(session, since, until, name)
        bunches = stored.bunches(session, since, until + 1, STEP)

    looked = [
        each for each in every if each.within(since, until) and name in {None, each.request_class}
    ]
    assert sorted(found, key=lambda each: each.id) == sorted(looked, key=lambda each: each.id)
    assert [each.since for each in found] == sorted(each.since for each in found)
    assert summed == Exposure.of(looked)
    every = [each for each in every if each.within(since, until + 1)]
    assert sum((each.exposure for each in bunches), Exposure()) == Exposure.of(every)
    for bunch in bunches:
        some = [each for each in every if _bunch(each) == _key(bunch)]
        assert bunch.exposure == Exposure.of(some)
        assert (bunch.first, bunch.since) == (
            min(each.id for each in some),
            min(each.since for each in some),
        )


def _bunch(each: Injected) -> tuple[object, ...]:
    return (each.request_class, int(each.since // STEP), each.verdict, each.running)


def _key(bunch: Bunch) -> tuple[object, ...]:
    return (bunch.request_class, bunch.step, bunch.verdict, bunch.exposure.running > 0)


@pytest.mark.parametrize("name", [None, "GET /a"])
def test_one_index_answers(in_memory: Database, name: str | None) -> None:
    with in_memory.read() as session:
        query = select(ExperimentRow.id).where(stored.within(AT, AT + 900, name))
        asked = query.compile(session.connection(), compile_kwargs={"literal_binds": True})
        plan = session.execute(text(f"EXPLAIN QUERY PLAN {asked}"))
        said = " ".join(row[-1] for row in plan)
    assert "SEARCH experiment USING INDEX ix_experiment_armed_at" in said


def an(
    verdict: Verdict | None, hurt: int, state: ExperimentState = "decided", lost: bool = False
) -> Injected:
    counts = DeviceCounts(20, 20, hurt, hurt, hurt)
    return Injected("e", "c", "GET /a", ("error@p",), state, verdict, "", 1, 2, counts, lost)


SURVIVED, HARMFUL, LOST = an("tolerated", 0), an("harmful", 18), an(None, 0, "aborted", lost=True)


@pytest.mark.parametrize(
    ("injected", "said"),
    [
        ([], "No: nothing was injected."),
        ([SURVIVED], "No: one experiment ran, and hurt nobody."),
        ([SURVIVED] * 3, "No: 3 experiments ran, and hurt nobody."),
        ([SURVIVED, HARMFUL], "Perhaps: 1 of 2 experiments hurt 18 devices."),
        ([HARMFUL], "Perhaps: the one experiment hurt 18 devices."),
        ([an("tolerated", 1), SURVIVED], "Perhaps: 1 of 2 experiments hurt one device."),
        ([an("harmful", 0)], "Perhaps: the one experiment was harmful."),
        ([an(None, 0, "observing")], "Perhaps: the one experiment may still be injecting."),
        ([SURVIVED, LOST], "Perhaps: of 1 nobody knows what came of it."),
    ],
)
def test_the_answer_in_words(injected: list[Injected], said: str) -> None:
    exposure = Exposure.of(injected)
    assert exposure.words == said
    assert said.lower().startswith(exposure.answer)
