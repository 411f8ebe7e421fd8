"""Records of runs go when they are old, and what rests on them is borne out as before."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.checker import merkle
from ldfi.checker.checkpoint import Checkpoint, remains_root
from ldfi.checker.document import EvidenceFile
from ldfi.checker.head import Head, SigningKey
from ldfi.checker.verify import Against, verify
from ldfi.errors import Conflict
from ldfi.experiments.domain.campaign.calendar import Schedule
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.scheduler.compaction import compact, foreseen
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database, chain, checkpoints
from ldfi.experiments.store.retention import Pruned
from ldfi.experiments.store.schema import CheckpointRow, RemainsRow, RunRow
from ldfi.testing.world import QUICK, World
from tests.checker.chain import key_pem, trusted
from tests.experiments.store.evidence import KEY, checked, file_of
from tests.experiments.store.lives import Again

OTHER_KEY = SigningKey(key_pem())
SMALL = 2
"""Records that go in one transaction."""
ON_SQLITE = pytest.mark.parametrize("again", ["sqlite"], indirect=True)
"""What is hashed and signed is the same on each database."""


@pytest.fixture
def lived(again: Again) -> tuple[World, Campaign]:
    """A campaign in its third run, of which all old results are folded, in a service with a
    key."""
    return again(a_life, KEY)


def a_life(database: Database) -> tuple[World, Campaign]:
    world = World(database)
    campaign = in_its_third_run(world)
    compact(database, world.now + 1, world.now, "ann")
    return world, campaign


def in_its_third_run(world: World) -> Campaign:
    definition = Definition(QUICK, schedule=Schedule("* * * * *"))
    campaign = world.engine.scheduler.commands.start(definition, "ann", world.now)
    while campaign.run < 3 or campaign.state != "running":
        world.step()
    world.engine.scheduler.shut_down("restart", world.now)
    return campaign


def going(session: Session, database: Database, now: float) -> list[str]:
    """What a prune promises that is not one."""
    compacted = foreseen(session, now + 1, now)
    return checkpoints.going(session, database.keys, now + 1, compacted.going, compacted.stands)


def test_what_a_certificate_rests_on_is_borne_out_later(lived: tuple[World, Campaign]) -> None:
    world, campaign = lived
    db, now = world.database, world.now
    before = file_of(world, campaign)
    kept = Head.from_json(before["head"])
    assert checked(world, before).lacking == []
    with db.read() as session:
        expected = len(going(session, db, now))
    # When the records go that nothing rests on
    assert checkpoints.prune(db, now + 1, now, "ann").rows == expected > 0
    # Then all is borne out, and it grew from what was there before
    after = file_of(world, campaign, since=kept.size)
    answer = checked(world, after, earlier=kept)
    assert (answer.false, answer.lacking) == ([], [])
    assert (answer.pruned, answer.runs) == (expected, kept.size - expected)
    # And when more has gone on, and goes
    assert checkpoints.prune(db, now + 1, now, "ann").rows == 0
    # And a record that somebody takes out is told from those
    with db.change(now) as change:
        whole = select(RunRow).where(RunRow.remains.is_(None)).order_by(RunRow.leaf).limit(1)
        row = change.session.scalars(whole).one()
        leaf = merkle.leaf(row.document.encode()).hex()
        assert row.nodes.startswith(leaf)
        nothing = json.dumps({"verdict": None, "hypothesis": [], "fired": []})
        change.session.add(RemainsRow(key="nothing", document=nothing))
        row.remains, row.document = "nothing", ""
    assert any("was not signed" in e or "not what was signed" in e for e in false(lived))


def false(lived: tuple[World, Campaign]) -> list[str]:
    return checked(lived[0], file_of(*lived)).false


@ON_SQLITE
def test_nobody_signs_what_was_changed(lived: tuple[World, Campaign]) -> None:
    world, _ = lived
    db, now = world.database, world.now
    with db.read() as session:
        (some, *_), *_ = checkpoints._due(session, now + 1).values()
    with db.change(now) as change:
        row = change.session.get_one(RunRow, some)
        row.document = row.document.replace('"purpose":"', '"purpose":"re', 1)
        row.document = row.document.replace('"began":', '"began":1', 1)
        row.document = row.document.replace('"purpose":"re', '"purpose":"', 1)
    with pytest.raises(Conflict, match="not what was hashed"):
        checkpoints.prune(db, now + 1, now, "ann")


def one_more_run(world: World, campaign: Campaign) -> Campaign:
    """Let whoever has the keys now go on with the campaign, until one more run is on record."""

    def size() -> int:
        with world.database.read() as session:
            return chain.head_of(session).size

    before = size()
    world.engine = Engine(world.database, now=world.now)
    while size() == before:
        world.step()
    world.engine.scheduler.shut_down("restart", world.now)
    return world.engine.scheduler.state.campaigns[campaign.id]


@pytest.fixture
def unsigned(again: Again) -> tuple[World, Campaign]:
    """The same in a service that has no key, of which records were pruned."""
    world, campaign = again(a_life)
    assert checkpoints.prune(world.database, world.now + 1, world.now, "ann").rows
    return world, campaign


@ON_SQLITE
def test_what_was_pruned_before_there_was_a_key_is_lacking_and_not_false(
    unsigned: tuple[World, Campaign],
) -> None:
    answer = checked(unsigned[0], file_of(*unsigned, keys=()))
    assert not answer.false
    assert any("nobody has signed" in each for each in answer.lacking)


@pytest.mark.parametrize("on_record", [False, True])
def test_the_first_key_signs_what_was_pruned_before_as_it_does_the_runs(
    unsigned: tuple[World, Campaign], on_record: bool
) -> None:
    world, campaign = unsigned
    # Given a service that has got its key, and somebody who vouches for what is there
    world.database.keys = (KEY,)
    with world.database.read() as session:
        assert not going(session, world.database, world.now), "nothing that nobody signed goes"
    with world.database.change(world.now) as change:
        chain.adopt(change)
    if on_record:
        campaign = one_more_run(world, campaign)
    # Then what was pruned is signed with all the rest
    answer = checked(world, file_of(world, campaign))
    assert (answer.false, answer.lacking) == ([], [])
    assert answer.pruned
    # And so is what is pruned later
    compact(world.database, world.now + 1, world.now, "ann")
    checkpoints.prune(world.database, world.now + 1, world.now, "ann")
    answer = checked(world, file_of(world, campaign))
    assert (answer.false, answer.lacking) == ([], [])


@ON_SQLITE
def test_a_checkpoint_without_signatures_is_not_signed_again(lived: tuple[World, Campaign]) -> None:
    world, campaign = lived
    checkpoints.prune(world.database, world.now + 1, world.now, "ann")
    with world.database.change(world.now) as change:
        row = change.session.scalars(select(CheckpointRow)).one()
        row.document = json.dumps({**json.loads(row.document), "signatures": {}})
    campaign = one_more_run(world, campaign)
    assert any("nobody has signed" in each for each in false((world, campaign)))
    compact(world.database, world.now + 1, world.now, "ann")
    with world.database.read() as session:
        assert going(session, world.database, world.now)
    with pytest.raises(Conflict, match="not what was signed"):
        checkpoints.prune(world.database, world.now + 1, world.now, "ann")


@pytest.mark.usefixtures("small_lots")
def test_whoever_has_no_key_stops_once_the_chain_is_signed(again: Again) -> None:
    world, campaign = again(a_life)
    database = world.database
    without = copy.copy(database)

    def get_a_key(_: Pruned, gone: int) -> None:
        if gone == SMALL:
            database.keys = (KEY,)
            with database.change(world.now) as change:
                chain.adopt(change)
            later.append(one_more_run(world, campaign))

    later: list[Campaign] = []
    gone = checkpoints.prune(without, world.now + 1, world.now, "ann", get_a_key).rows
    assert gone == SMALL
    answer = checked(world, file_of(world, later[0]))
    assert (answer.false, answer.lacking, answer.pruned) == ([], [], SMALL)


@pytest.fixture
def small_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that several are of one class version, as when more is old another day."""
    monkeypatch.setattr(checkpoints, "BATCH", SMALL)


@pytest.mark.usefixtures("small_lots")
def test_what_was_signed_is_signed_again_with_what_goes(lived: tuple[World, Campaign]) -> None:
    world, campaign = lived
    gone = checkpoints.prune(world.database, world.now + 1, world.now, "ann").rows
    answer = checked(world, file_of(world, campaign))
    assert gone > SMALL
    assert (answer.false, answer.lacking, answer.pruned) == ([], [], gone)


@ON_SQLITE
@pytest.mark.usefixtures("small_lots")
def test_what_an_earlier_key_signed_is_signed_by_the_next(lived: tuple[World, Campaign]) -> None:
    world, campaign = lived

    def rotate(_: Pruned, gone: int) -> None:
        world.database.keys = (KEY, OTHER_KEY) if gone == SMALL else (OTHER_KEY,)
        with world.database.change(world.now) as change:  # as the next end of a run would sign it
            chain.adopt(change)

    gone = checkpoints.prune(world.database, world.now + 1, world.now, "ann", rotate).rows
    assert gone > 2 * SMALL
    document = EvidenceFile.from_json(file_of(world, campaign))
    assert [*document.classes[0].checkpoint.signatures] == [OTHER_KEY.id]  # type: ignore[union-attr]
    assert not verify(document, Against(trusted(KEY, OTHER_KEY), world.now + 1)).false


@ON_SQLITE
@pytest.mark.usefixtures("small_lots")
@pytest.mark.parametrize("checkpoint", ["as it was", "made anew", "taken out"])
def test_nobody_signs_changed_remains(lived: tuple[World, Campaign], checkpoint: str) -> None:
    world, _ = lived

    def change_what_stands_for_it(_: Pruned, gone: int) -> None:
        """Without the key."""
        with world.database.change(world.now) as change:
            row = change.session.scalars(select(RemainsRow)).first()
            assert row is not None
            row.document = json.dumps({**json.loads(row.document), "fired": ["error@x"]})
            change.session.flush()
            signed = change.session.scalars(select(CheckpointRow)).one()
            if checkpoint == "made anew":
                was = Checkpoint.from_json(json.loads(signed.document))
                mine = checkpoints.left(change.session, ("GET /boot", 1))
                signed.document = json.dumps(replace(was, root=remains_root(mine)).to_json())
            elif checkpoint == "taken out":
                change.session.delete(signed)

    with pytest.raises(Conflict, match="not what was signed"):
        checkpoints.prune(
            world.database, world.now + 1, world.now, "ann", change_what_stands_for_it
        )


@ON_SQLITE
def test_without_the_key_of_a_signed_chain_none_goes(lived: tuple[World, Campaign]) -> None:
    world, _ = lived
    world.database.keys = ()
    with world.database.read() as session:
        assert not going(session, world.database, world.now), "none is promised either"
        world.database.keys = (KEY,)
        assert going(session, world.database, world.now)
    world.database.keys = ()
    assert checkpoints.prune(world.database, world.now + 1, world.now, "ann").rows == 0
    with world.database.read() as session:
        assert chain.head_of(session).signatures
