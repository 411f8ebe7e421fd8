"""What is old goes, and nobody knows less for it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, func, select
from sqlalchemy.exc import DBAPIError
from typer.testing import CliRunner

from ldfi.cli.main import app
from ldfi.errors import Invalid
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.scheduler.evidence import knowledge_of
from ldfi.experiments.store import experiments, notifications, retention, stream_positions
from ldfi.experiments.store.certificates import CampaignCertificate
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.evidence_file import evidence_file
from ldfi.experiments.store.readonly import as_it_is
from ldfi.experiments.store.retention import Retention, due, prune
from ldfi.experiments.store.schema import (
    AuditRow,
    DeliveryRow,
    ExperimentRow,
    FindingRow,
    MaintenanceRow,
    NotificationRow,
    PositionRow,
    ReplayRow,
    RunRow,
    TokenRow,
)
from ldfi.experiments.store.stream_positions import Position
from ldfi.testing.world import QUICK, World
from tests.experiments.store.lives import Again, after_a_campaign

MOMENT = Retention(audit=1.0, details=1.0)


def known(database: Database, now: float) -> dict[str, Any]:
    """All that whoever starts from this database knows, and can prove."""
    engine = Engine(database, now=now)
    campaigns = engine.scheduler.state.campaigns.values()
    with database.read() as session:
        certified = [
            CampaignCertificate(
                campaign.id, name, each.version, each.knowledge.certificate()["certificate"]
            )
            for campaign in campaigns
            for name, each in campaign.explorations.items()
        ]
        return {
            "certificates": [engine.scheduler.certificates(each) for each in campaigns],
            "knowledge": [
                knowledge_of(session, each).certificate()
                for each in engine.catalogue.classes.values()
            ],
            "levels": experiments.levels(session),
            "evidence": evidence_file(session, certified, (), now),
            "findings": sorted((row.id, row.state) for row in session.scalars(select(FindingRow))),
        }


def test_whoever_starts_from_what_is_left_knows_the_same(database: Database) -> None:
    # Given a campaign that has found something, and goes on
    world = World(database, edges=2)
    campaign = world.start(QUICK)
    while "open" not in world.findings().values():
        world.step()
    world.steps(20)
    assert campaign.explorations
    world.engine.scheduler.shut_down("restart", world.now)
    before, now = known(database, world.now), world.now + 1_000.0
    with database.read() as session:
        shown = set(_shown(session))
        runs = {row.id: (row.lesson or {}).get("runs") for row in _experiments(session)}
        records = [row.document for row in session.scalars(select(RunRow))]
    assert any(runs.values())
    assert before["evidence"]["classes"][0]["runs"]
    # When all that may go has gone
    gone = {each.what: each.rows for each in prune(database, MOMENT, now, "ann")}
    # Then something has, and nobody knows less
    assert gone["audit entries"]
    assert gone["details of experiments"]
    assert known(database, world.now) == before
    with database.read() as session:
        left = {row.id: (row.lesson or {}).get("runs") for row in _experiments(session)}
        assert [row.document for row in session.scalars(select(RunRow))] == records
    assert {name: each for name, each in left.items() if each} == {
        name: each for name, each in runs.items() if each and name in shown
    }
    # And asked again, nothing is left to do
    with database.read() as session:
        again = {each.what: each.rows for each in due(session, MOMENT, now)}
    assert again["details of experiments"] == 0


def _shown(session: Any) -> Iterator[str]:
    """What findings name, and the newest that hurt with just their failures."""
    for row in session.scalars(select(FindingRow)):
        yield row.experiment_id
        tried = [each for each in _experiments(session) if each.verdict == "harmful"]
        same = [each for each in tried if sorted(each.hypothesis) == sorted(row.faults)]
        yield from (each.id for each in sorted(same, key=lambda each: each.ended_at or 0.0)[-1:])


def _experiments(session: Any) -> list[ExperimentRow]:
    return list(session.scalars(select(ExperimentRow)))


@given(
    ages=st.lists(st.integers(0, 20), min_size=1, max_size=12),
    told=st.none() | st.integers(1, 14),
    batch=st.integers(1, 5),
)
def test_of_the_audit_goes_what_is_old_told_and_not_the_last(
    ages: list[int], told: int | None, batch: int, in_memory: Database
) -> None:
    database, now, keep = in_memory, 1_000.0, 10.0
    with database.change(0.0) as change:
        change.session.execute(delete(AuditRow))
        change.session.execute(delete(PositionRow))
        for number, age in enumerate(ages):
            row = AuditRow(id=number + 1, at=now - age, who="ann", what=f"entry {number + 1}")
            change.session.add(row)
        if told is not None:
            stream_positions.save(change, "ldfi.events", {0: Position(told, told)})
    terms = Retention(keep, keep, "" if told is None else "ldfi.events")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention, "BATCH", batch)
        prune(database, terms, now, "ann")
    with database.read() as session:
        left = set(session.scalars(select(AuditRow.id).where(AuditRow.what.startswith("entry "))))
    assert left == {
        number
        for number, age in enumerate(ages, start=1)
        if age <= keep or number == len(ages) or (told is not None and number >= told)
    }


def test_what_was_not_told_yet_stays_where_it_has_to_be(database: Database) -> None:
    with database.change(10.0) as change:
        change.audit("halt")
        change.audit("resume")
    keep = Retention(1.0, 1.0, "ldfi.events")
    with database.read() as session:
        assert due(session, keep, 100.0)[0].rows == 0
    with database.change(20.0) as change:
        stream_positions.save(change, "ldfi.events", {0: Position(3, 3)})
    with database.read() as session:
        assert due(session, keep, 100.0)[0].rows == 1


def test_notifications_stay_that_somebody_waits_for_or_never_got(database: Database) -> None:
    # Given five: delivered, given up by one, waiting, not dealt, and the last
    with database.change(10.0) as change:
        for title in ("delivered", "given up", "waiting"):
            notifications.put(change, "finding", title, "text")
        change.session.flush()
        notifications.deal(change, ["a", "b"])
        for identity, error in ((1, None), (2, "410 Gone")):
            notifications.end_delivery(change, identity, "a")
            notifications.end_delivery(change, identity, "b", error)
        notifications.put(change, "finding", "not dealt", "text")
        notifications.put(change, "finding", "the last", "text")
    # When it is long ago
    prune(database, MOMENT, 1_000.0, "ann")
    # Then the first is gone, with its deliveries
    with database.read() as session:
        rows = session.scalars(select(NotificationRow).order_by(NotificationRow.id))
        left = ["given up", "waiting", "not dealt", "the last"]
        assert [row.document["title"] for row in rows] == left
        assert set(session.scalars(select(DeliveryRow.notification_id))) == {2, 3}


def test_windows_replays_and_tokens_go_when_they_are_over(database: Database) -> None:
    def token(name: str, **more: Any) -> TokenRow:
        made = {"id": name, "name": name, "role": "viewer", "digest": name, "created_by": "ann"}
        return TokenRow(**{**made, "created_at": 0.0, **more})

    windows = (("over", 5.0, None), ("closed", 2_000.0, 5.0), ("open", 2_000.0, None))
    with database.change(0.0) as change:
        for name, until, closed_at in windows:
            more = {"owner": "ann", "reason": "x", "down": [], "opened_at": 0.0}
            change.session.add(MaintenanceRow(id=name, until=until, closed_at=closed_at, **more))
        for name, at in (("old", 1.0), ("new", 999.5)):
            change.session.add(ReplayRow(id=name, kept_at=at, kept_by="ann", document={}))
        change.session.add_all([token("good"), token("revoked", revoked=True)])
        change.session.add_all([token("expired", expires_at=5.0), token("lasting", expires_at=2e3)])
        change.session.add(token("young", revoked=True, created_at=999.5))
    prune(database, MOMENT, 1_000.0, "ann")
    with database.read() as session:
        assert set(session.scalars(select(MaintenanceRow.id))) == {"open"}
        assert set(session.scalars(select(ReplayRow.id))) == {"new"}
        assert set(session.scalars(select(TokenRow.id))) == {"good", "lasting", "young"}


def test_a_broken_prune_goes_on(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 3)
    with database.change(0.0) as change:
        for number in range(10):
            change.audit(f"entry {number}")

    def killed(_: object, gone: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune(database, MOMENT, 100.0, "ann", killed)
    prune(database, MOMENT, 100.0, "ann")
    with database.read() as session:
        left = list(session.scalars(select(AuditRow.what).order_by(AuditRow.id)))
    assert [each for each in left if each.startswith("entry")] == []
    assert set(left) == {"pruned"}


def pruned(url: str, *options: str) -> dict[str, Any]:
    """Return what ``ldfi prune --json`` prints, with rows by what they are. Raises what it ends
    with."""
    words = ["prune", "--json", *options]
    done = CliRunner().invoke(app, words, env={"LDFI_DATABASE_URL": url}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    return {**document, "pruned": {each["what"]: each["rows"] for each in document["pruned"]}}


def test_the_command_counts_first_and_then_does_it(database: Database, database_url: str) -> None:
    with database.change(0.0) as change:
        change.audit("halt")
        change.audit("resume")
    counted = pruned(database_url, "--dry-run")
    assert counted["dry_run"] is True
    assert counted["pruned"]["audit entries"] == 1
    with database.read() as session:
        assert session.scalar(select(func.count(AuditRow.id))) == 2
    env = {"LDFI_DATABASE_URL": database_url}
    assert "audit entries" in CliRunner().invoke(app, ["prune"], env=env).stdout
    with pytest.raises(Invalid, match="keep_audit_days"):
        pruned(database_url, "--keep-audit-days", "1")
    with database.read() as session:
        rows = session.scalars(select(AuditRow).order_by(AuditRow.id))
        said = [(row.what, row.who) for row in rows]
    assert said == [("resume", "ldfi"), ("pruned", "ldfi prune")]


def test_the_command_does_what_it_counted_where_lessons_go_as_well(again: Again) -> None:
    world, _ = again(after_a_campaign)
    url = world.database.engine.url.render_as_string(hide_password=False)

    counted = pruned(url, "--dry-run")["pruned"]

    assert counted["lessons"]
    assert pruned(url)["pruned"] == counted


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """Whoever mistypes its path in a cron job would hear of nothing for ever."""
    for options in (["--dry-run"], []):
        with pytest.raises(Invalid, match="there is no database at"):
            pruned(f"sqlite:///{tmp_path / 'typo'}", *options)
        assert list(tmp_path.iterdir()) == []


OLDER = "CREATE TABLE alembic_version AS SELECT '0021' AS version_num"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        pytest.param(OLDER, "tables of revision 0021", id="of an older version"),
        pytest.param("CREATE TABLE audit (id INT)", "not a database of ldfi", id="of others"),
    ],
)
def test_who_only_counts_leaves_a_database_as_it_is(made: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.sqlite3"
    with closing(sqlite3.connect(file)) as other:
        other.execute(made)
        other.commit()
    before = file.read_bytes()

    with pytest.raises(Invalid, match=said):
        pruned(f"sqlite:///{file}", "--dry-run")
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (before, [file])


def test_who_only_counts_can_write_nothing(database_url: str) -> None:
    Database(database_url).close()

    with as_it_is(database_url) as session, pytest.raises(DBAPIError, match=r"read-?only"):
        session.execute(delete(AuditRow))
