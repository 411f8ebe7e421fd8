"""The commands on the page of a finding run as they are copied from it."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from sqlalchemy import select

from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.queries.finding_commands import TARGET, finding_commands, reproduce_command
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import FindingRow
from ldfi.scenarios.scenario import read
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import World
from tests.dashboards.browsing import Site, site
from tests.dashboards.seeded import QUICK
from tests.kit.cli import At, ldfi
from tests.kit.service import service
from tests.scenarios.staging import KEY, Staging, scenario_file, staging

COMMAND = re.compile(r'<pre id="command-\d+">(.*?)</pre>', re.DOTALL)
PLAY = {"/play/premium": Call("root", (Step("critical", (Call("api>db:get:licensedb"),)),))}


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[Staging]:
    with staging(monkeypatch) as running:
        yield running


@pytest.fixture
def found(tmp_path: Path) -> Iterator[tuple[Site, str]]:
    """A service that has found what is wrong with that system, and the finding's id."""
    url = f"sqlite:///{tmp_path / 'ldfi.sqlite3'}"
    database, begun = Database(url), time.time() - 240
    world = World(database, PLAY, engine=Engine(database, now=begun, lease=10.0))
    world.now = begun
    for _ in range(12):
        world.step()
    world.finish(world.start(Settings(**QUICK)))
    world.engine.scheduler.shut_down("over", world.now)
    with database.read() as session:
        (finding,) = session.scalars(select(FindingRow.id))
    database.close()
    with site(service(url)) as here:
        yield here, finding


@pytest.mark.servers  # it takes seconds: requests are sent, and their traces awaited
def test_every_command_runs_as_it_is_copied(
    found: tuple[Site, str], target: Staging, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, finding = found
    monkeypatch.chdir(tmp_path)
    page = here.logged_in("viewer").get(f"/findings/{finding}").text
    lines = [line for text in COMMAND.findall(page) for line in unescape(text).splitlines()]
    ends = {}
    for line in lines:
        program, *words = shlex.split(line.replace(TARGET, target.url))
        assert program == "ldfi"
        words += ["--no-watch"] if "verify" in words else []  # nobody asks for anything any more
        done = ldfi(*words, **At(here.url).env(), FIT_KEYS=KEY)
        ends[" ".join(words[:2])] = done.returncode
        assert done.returncode in {0, 1}, (line, done.stdout, done.stderr)
    assert ends == {
        f"reproduce {finding}": 1,
        "findings scenario": 0,
        f"reproduce {finding}.yaml": 1,
        "export curl": 0,
        "findings verify": 0,
    }
    assert unescape(page).count(f"ldfi reproduce {finding} --target {TARGET} --device ") == 1 + 3


def test_a_request_with_holes_and_a_body_says_what_it_takes(tmp_path: Path) -> None:
    asked = {"method": "POST", "path": "/play/*", "body": {"a": "*"}}
    odd = read(scenario_file(tmp_path, request=asked))
    assert reproduce_command("f1", odd) == (
        f"ldfi reproduce f1 --target {TARGET} --device my-device"
        " --path '/play/*' --data body.json --unsafe"
    )
    assert not [each for each in finding_commands("f1", odd) if "curl" in each.text]


def test_without_a_scenario_there_is_still_what_needs_none() -> None:
    texts = [each.text for each in finding_commands("f1", None)]
    assert texts == [reproduce_command("f1", None), "ldfi findings verify f1"]
