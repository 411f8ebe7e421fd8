"""What docs/deployment.md says of backups, done by its commands."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.engine import make_url

from deploy.stack import postgresql
from ldfi.experiments.domain.judging.experiment import ACTIVE
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import ExperimentRow, FindingRow
from ldfi.testing.world import QUICK, World
from tests.experiments.store.evidence import KEY, checked, file_of

pytestmark = pytest.mark.servers


def command(*words: str) -> None:
    if shutil.which(words[0]) is None:
        missing = f"{words[0]} is not installed"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def of_sqlite(url: str, folder: Path) -> str:
    copy = folder / "restored" / "ldfi.sqlite3"
    copy.parent.mkdir()
    command("sqlite3", str(make_url(url).database), f".backup {copy}")
    return f"sqlite:///{copy}"


def of_postgresql(url: str, folder: Path, server: postgresql.Server) -> str:
    dump, fresh = folder / "ldfi.dump", server.create()
    there = ("--host", str(server.folder), "--username", postgresql.USER)
    name = str(make_url(url).database)
    command("pg_dump", *there, "--format=custom", f"--file={dump}", name)
    command("pg_restore", *there, f"--dbname={fresh}", "--no-owner", str(dump))
    return server.url(fresh)


def test_a_backup_that_was_taken_while_an_experiment_was_armed_is_restored(
    database_url: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    # Given a campaign that has found something, with an experiment that is armed
    database = Database(database_url, (KEY,))
    world = World(database)
    campaign = world.start(QUICK)
    while "open" not in world.findings().values():
        world.step()
    world.until_armed()
    # When a backup is taken, the service goes on, and the backup is restored
    taken, found, file = world.now, findings(database), file_of(world, campaign)
    if database_url.startswith("sqlite"):
        url = of_sqlite(database_url, tmp_path)
    else:
        url = of_postgresql(database_url, tmp_path, request.getfixturevalue("postgresql_server"))
    world.finish(campaign)
    database.close()
    restored = Database(url, (KEY,))
    engine = Engine(restored, now=taken + 60.0)
    engine.tick(taken + 60.0)
    # Then nothing is armed, what was found is there, and the chain is borne out and goes on
    with restored.read() as session:
        assert not list(session.scalars(select(ExperimentRow.id).where(armed())))
    assert findings(restored) == found
    back = World(restored, engine=engine)
    back.now = taken + 60.0
    (again,) = engine.scheduler.state.campaigns.values()
    before = checked(back, file_of(back, again))
    assert before.false == []
    assert before.runs == len(file["classes"][0]["runs"]) + 1, "and the one that was broken off"
    back.finish(again)
    assert checked(back, file_of(back, again)).false == []
    restored.close()


def armed() -> Any:
    return ExperimentRow.state.in_(ACTIVE)


def findings(database: Database) -> list[tuple[str, str]]:
    with database.read() as session:
        return sorted((row.id, row.state) for row in session.scalars(select(FindingRow)))
