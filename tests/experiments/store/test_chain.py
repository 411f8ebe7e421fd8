"""The chain of runs: what a whole campaign leaves behind is borne out by a program of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import delete, select

from ldfi.checker import merkle
from ldfi.checker.canonical import canonical, read
from ldfi.checker.document import EvidenceFile
from ldfi.checker.head import Head, SigningKey, counts_root
from ldfi.checker.record import RunRecord
from ldfi.checker.verify import Against, verify
from ldfi.errors import Conflict
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.store import Database, chain, chain_check, experiments
from ldfi.experiments.store.arming import Armed
from ldfi.experiments.store.certificates import CampaignCertificate
from ldfi.experiments.store.evidence_file import evidence_file, version_of
from ldfi.experiments.store.schema import CountNodeRow, ExperimentRow, HeadRow, RunCountRow, RunRow
from ldfi.testing.world import PROGRAM, QUICK, World
from tests.checker.chain import chain as made_of
from tests.checker.chain import key_pem, trusted
from tests.experiments.store.evidence import KEY, append, checked, file_of
from tests.experiments.store.test_arming import NOW, WIDE, a_campaign, an_order, end, try_arming
from tests.kit.rows import experiment_row


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A campaign, from its first experiment to its last, in a service with a key."""
    with World.in_memory({"/boot": PROGRAM}) as made:
        made.database.keys = (KEY,)
        yield made


@pytest.fixture(scope="module")
def campaign(world: World) -> Campaign:
    campaign = world.start(QUICK)
    world.finish(campaign)
    return campaign


def test_what_a_campaign_leaves_behind_is_borne_out(world: World, campaign: Campaign) -> None:
    found = checked(world, file_of(world, campaign), max_age=60.0)

    assert (found.false, found.lacking) == ([], [])
    assert found.runs >= 5


def test_experiments_on_a_certificate_carry_their_record(world: World, campaign: Campaign) -> None:
    with world.database.read() as session:
        records = {row.experiment_id: read(row.document) for row in session.scalars(select(RunRow))}
    carried = 0
    for each in file_of(world, campaign)["classes"]:
        for run in each["certificate"]["evidence"]:
            assert ("proof" in run) == (run["origin"] == "injected")
            if "proof" in run:
                record = records[run["proof"]["experiment"]]
                assert canonical({**run["proof"], "number": record["number"]}) == canonical(record)
                carried += 1
    assert carried >= 5


def test_every_experiment_that_was_armed_has_a_record(world: World, campaign: Campaign) -> None:
    with world.database.read() as session:
        armed = set(
            session.scalars(select(ExperimentRow.id).where(ExperimentRow.armed_at.is_not(None)))
        )
        rows = list(session.scalars(select(RunRow).order_by(RunRow.leaf)))
        assert {row.experiment_id for row in rows} == armed
        assert [row.leaf for row in rows] == list(range(len(armed)))
        for row in rows:
            record = RunRecord.from_json(read(row.document))
            assert record.written.decode() == row.document
            ended = session.get_one(ExperimentRow, row.experiment_id)
            assert (record.verdict, record.ended) == (ended.verdict, ended.ended_at)
            assert len(record.traces.named) == len((ended.lesson or {}).get("traces", ()))


def test_the_head_is_signed_at_each_end(world: World, campaign: Campaign) -> None:
    with world.database.read() as session:
        head = chain.head_of(session)
        count = len(list(session.scalars(select(RunRow.leaf))))

    assert list(head.wrong(trusted(KEY))) == []
    assert head.size == count
    assert head.counts == counts_root(head.runs)
    assert set(head.runs) == {(name, 1) for name in campaign.explorations}


def test_an_earlier_head_catches_a_chain_cut_back(world: World, campaign: Campaign) -> None:
    whole = file_of(world, campaign)
    kept = Head.from_json(whole["head"])
    since = file_of(world, campaign, since=kept.size)
    assert checked(world, since, earlier=kept).false == []
    # When the last run is taken out of the database, and the head made anew with the service's key
    with world.database.change(world.now) as change:
        last = change.session.get_one(RunRow, kept.size - 1)
        gone = {each.key: getattr(last, each.key) for each in RunRow.__table__.columns}
        before = change.session.get_one(HeadRow, 1)
        was = before.document
        runs = dict(kept.runs)
        runs[last.request_class, 1] -= 1
        root = merkle.root(kept.size - 1, chain_check.node_of(change.session))
        counts = counts_root(runs)
        shorter = Head(kept.size - 1, root, kept.time, runs, counts=counts).signed_by([KEY])
        before.document = chain.written(shorter)
        change.session.execute(delete(RunRow).where(RunRow.leaf == kept.size - 1))
    try:
        cut = file_of(world, campaign)
        assert any("cut back" in each for each in checked(world, cut, earlier=kept).false)
        with pytest.raises(Conflict, match="never grew"):
            file_of(world, campaign, since=kept.size)
    finally:
        with world.database.change(world.now) as change:
            change.session.add(RunRow(**gone))
            change.session.get_one(HeadRow, 1).document = was


def test_without_a_key_it_is_true_and_unsigned(world: World, campaign: Campaign) -> None:
    document = file_of(world, campaign, keys=())
    document["head"]["signatures"], document["head"]["keys"] = {}, []
    found = checked(world, document)

    assert found.false == []
    assert found.lacking == ["nobody has signed it"]


def test_while_keys_rotate_who_has_either_can_check(world: World, campaign: Campaign) -> None:
    old, new = KEY, SigningKey(key_pem())
    both = EvidenceFile.from_json(file_of(world, campaign, keys=(old, new)))
    with world.database.change(world.now) as change:  # as the next end of a run would sign it
        row = change.session.get_one(HeadRow, 1)
        was, head = row.document, chain.bare_head_of(change.session)
        row.document = chain.written(head.signed_by((old, new)))
    only_new = EvidenceFile.from_json(file_of(world, campaign, keys=(new,)))

    def false(document: EvidenceFile, *keys: SigningKey) -> list[str]:
        return verify(document, Against(trusted(*keys), world.now + 1)).false

    assert false(both, old) == false(both, new) == false(both, old, new) == []
    assert false(only_new, new) == false(only_new, old, new) == []
    assert any("whom nobody here trusts" in each for each in false(only_new, old))
    with world.database.change(world.now) as change:
        change.session.get_one(HeadRow, 1).document = was


def test_runs_from_before_the_chain_are_listed_unsigned(world: World, campaign: Campaign) -> None:
    with world.database.change(world.now) as change:
        of = {"campaign_id": campaign.id, "request_class": next(iter(campaign.explorations))}
        ended = {"verdict": "harmful", "armed_at": 1.0, "ended_at": 2.0, "lesson": {"version": 1}}
        change.session.add(experiment_row("old", ["error@layout"], **of, **ended))
    try:
        document = file_of(world, campaign)
        found = checked(world, document)
        assert found.false == []
        assert any("1 runs are not signed" in each for each in found.lacking)
    finally:
        with world.database.change(world.now) as change:
            change.session.execute(delete(ExperimentRow).where(ExperimentRow.id == "old"))


def test_the_version_is_that_of_the_last_run(world: World, campaign: Campaign) -> None:
    name = next(iter(campaign.explorations))
    with world.database.read() as session:
        assert version_of(session, name, campaign.id) == 1
        assert version_of(session, "GET /nowhere", campaign.id) == 1


def test_a_record_is_there_if_and_only_if_the_end_is(
    world: World, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails in the transaction takes the record with it; written again, it is there once."""
    del campaign
    before = _sizes(world.database)
    another = world.start(QUICK)

    class Torn(Exception):  # noqa: N818 - it says what happened
        """The process was killed."""

    # When the transaction of an end is torn after the record was appended
    torn = 0
    real = chain.append

    def append(*args: Any) -> None:
        nonlocal torn
        real(*args)
        torn += 1
        if torn == 1:
            raise Torn

    monkeypatch.setattr(chain, "append", append)
    with pytest.raises(Torn):
        world.finish(another)
    # Then neither is there
    rows, ended, size = _sizes(world.database)
    assert (rows, ended, size) == before
    # And when it is written again, both are, once
    world.finish(another)
    rows, ended, size = _sizes(world.database)
    assert rows == ended == size > before[0]


def _sizes(database: Database) -> tuple[int, int, int]:
    with database.read() as session:
        rows = len(list(session.scalars(select(RunRow.leaf))))
        query = select(ExperimentRow.id).where(
            ExperimentRow.armed_at.is_not(None), ExperimentRow.ended_at.is_not(None)
        )
        return rows, len(list(session.scalars(query))), chain.head_of(session).size


def test_an_end_that_is_written_twice_leaves_one_record(database: Database) -> None:
    order = an_order("e1")
    a_campaign(database)
    try_arming(database, order, WIDE)
    end(database, order, 3)
    with database.change(NOW) as change:
        experiments.end(change, order.experiment, 3, None)
    assert _sizes(database) == (1, 1, 1)


def test_what_nobody_ended_leaves_a_record_and_to_drop_it_is_found(database: Database) -> None:
    """Whoever can kill the service makes no run vanish."""
    a_campaign(database)
    database.keys = (KEY,)
    orders = [an_order("e1"), an_order("e2"), an_order("e3", "GET /other")]
    orders[1].experiment.version = orders[2].experiment.version = 2
    try_arming(database, orders[0], WIDE)
    end(database, orders[0], 3)
    for each in orders[1:]:
        assert isinstance(try_arming(database, each, WIDE, NOW + 1), Armed)
    # When the process that ran two of them is killed, and somebody finds that out
    with database.change(NOW + 60) as change:
        assert sorted(experiments.close_abandoned(change)) == ["e2", "e3"]
    with database.change(NOW + 90) as change:
        assert experiments.close_abandoned(change) == []
        # and it was only asleep, and ends what is closed
        experiments.end(change, orders[1].experiment, 3, None)
    # Then each left a record that holds together, of the version it was armed on
    assert _sizes(database) == (3, 3, 3)
    certified = [CampaignCertificate("c", name, 2, {}) for name in ("GET /", "GET /other")]
    with database.read() as session:
        document = evidence_file(session, certified, (KEY,), NOW + 7_200)
    for each in document["classes"]:
        each["certificate"] = None
    against = Against(trusted(KEY), NOW + 7_200)
    found = verify(EvidenceFile.from_json(document), against)
    assert (found.false, found.runs) == ([], 2)
    for leaf in EvidenceFile.from_json(document).leaves():
        assert (leaf.record.state, leaf.record.verdict) == ("aborted", None)
        assert (leaf.record.began, leaf.record.ended) == (NOW + 1, NOW + 60)
        assert leaf.record.reason == "whoever ran it was gone"
    # And to drop one is found
    document["classes"][0]["runs"].clear()
    found = verify(EvidenceFile.from_json(document), against)
    assert found.false == ["GET / (version 2): 0 runs of 1 are here"]


def test_what_was_never_armed_leaves_none(database: Database) -> None:
    a_campaign(database)
    order = an_order("e1")
    with database.change(NOW) as change:
        experiments.propose(change, order.experiment, "c", 1, NOW + 10)
    order.experiment.abort("rejected", NOW)
    with database.change(NOW) as change:
        experiments.end(change, order.experiment, 0, None)
    assert _sizes(database) == (0, 0, 0)


def test_runs_of_a_large_chain_are_proved(database: Database) -> None:
    """Whatever the size, on either database: what is looked up is what was kept."""
    made = made_of(random.Random(4), 37)
    with database.change(made.head().time) as change:
        append(change, made.records)
    with database.read() as session:
        head, node = chain.head_of(session), chain_check.node_of(session)
        assert (head.root, head.size) == (made.head().root, 37)
        assert dict(head.runs) == dict(made.head().runs)
        for leaf, each in enumerate(made.records):
            path = merkle.inclusion(leaf, 37, node)
            assert merkle.included(each.leaf, leaf, 37, path, head.root)


def test_a_head_from_before_is_counted_on(database: Database) -> None:
    """What it lists is taken over when the next run ends, and nothing of it is lost."""
    made = made_of(random.Random(4), 23)
    database.keys = (KEY,)
    with database.change(made.head().time) as change:
        append(change, made.records[:11])
        before = chain.head_of(change.session)
        row = change.session.get_one(HeadRow, 1)
        row.document = chain.written(
            Head(before.size, before.root, before.time, before.runs).signed_by([KEY])
        )
        for table in (RunCountRow, CountNodeRow):
            change.session.execute(delete(table))
    with database.read() as session:
        old = chain.head_of(session)
        assert (old.counts, list(old.wrong(trusted(KEY)))) == (None, [])
    with database.change(made.head().time) as change:
        append(change, made.records[11:])
    with database.read() as session:
        head = chain.head_of(session)
    assert list(head.wrong(trusted(KEY))) == []
    assert (head.size, head.root) == (23, made.head().root)
    assert dict(head.runs) == dict(made.head().runs)
