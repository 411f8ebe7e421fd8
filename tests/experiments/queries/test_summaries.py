"""What is read of experiments, each by itself, of a run and of a window, adds up, whatever is on
record and whatever still runs."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.counts import DeviceCounts, counts_so_far
from ldfi.experiments.domain.judging.experiment import ACTIVE, Experiment
from ldfi.experiments.queries.campaign_summary import campaign_summaries, campaign_summary
from ldfi.experiments.queries.experiment_summary import experiment_summary, experiments_of_run
from ldfi.experiments.store import Database
from ldfi.experiments.store import was_it_us as stored
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow
from tests.kit.campaigns import an_experiment
from tests.kit.drawn_store import Drawn, Store, stores

NOW = 1_000_000.0


def running(draw: Any, drawn: Drawn) -> Experiment:
    """Draw what an experiment that runs has done so far."""
    reached = draw(st.integers(0, drawn.devices["reserved"]))
    found = an_experiment(drawn.row.id, drawn.row.request_class, "p")
    found.armed_at = drawn.row.armed_at
    found.used = draw(st.integers(0, drawn.devices["reserved"]))
    found.exposed = {f"d{number}" for number in range(reached)}
    found.hurt = {f"d{number}" for number in range(draw(st.integers(0, reached)))}
    control = found.arms["control"]
    control.devices = {f"c{number}" for number in range(9)}
    control.failures = draw(st.integers(0, 9))
    found.bystanders.work.hurt.update(f"b{n}" for n in range(draw(st.integers(0, 2))))
    return found


@given(store=stores(NOW), data=st.data())
def test_counts_add_up(in_memory: Database, store: Store, data: st.DataObject) -> None:
    with in_memory.change(NOW) as change:
        store.put(change)
    live = {
        each.row.id: running(data.draw, each)
        for each in store.experiments
        if each.row.state in ACTIVE and data.draw(st.booleans())
    }
    expected = {
        each.row.id: counts_so_far(live[each.row.id], each.devices["reserved"])
        if each.row.id in live
        else DeviceCounts(**each.devices)
        for each in store.experiments
    }
    with in_memory.read() as session:
        for each in session.query(ExperimentRow):
            assert experiment_summary(each, live.get(each.id)).counts == expected[each.id]
        rows = session.query(CampaignRow).order_by(CampaignRow.id).all()
        together = campaign_summaries(session, rows, {}, live)
        for row, summary in zip(rows, together, strict=True):
            of_run = experiments_of_run(session, row.id, row.run, live)
            mine = store.of(row)
            assert {one.id: one.counts for one in of_run} == {
                one.row.id: expected[one.row.id] for one in mine
            }
            assert summary == campaign_summary(session, row, None, live)
            assert summary.counts == sum((one.counts for one in of_run), DeviceCounts())
            assert summary.cost.armed == sum(one.armed for one in mine)
        window = stored.injected(session, stored.within(NOW - 3600, NOW))
        summed = stored.exposure(session, NOW - 3600, NOW)
    armed = {one.row.id: DeviceCounts(**one.devices) for one in store.experiments if one.armed}
    assert {one.id: one.counts for one in window} == armed
    assert summed.counts == sum(armed.values(), DeviceCounts())
    for counts in expected.values():
        assert counts.hurt <= counts.reached <= counts.treated
        assert counts.hurt <= counts.failed
