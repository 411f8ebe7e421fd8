"""The demo says what it sees, what it waits for, and why it does not end."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest

from ldfi.demo import repairs
from ldfi.experiments.cli import demo
from ldfi.experiments.cli.client import Client
from ldfi.experiments.cli.demo_pace import Asking, DevicesHeard, fitting, rates
from ldfi.experiments.cli.demo_view import Machine, slowed, traffic_so_far, why_not_done
from ldfi.experiments.cli.processes import Processes
from ldfi.experiments.cli.terminal import console
from ldfi.experiments.errors import ExperimentsError, Invalid

IDLE, BUSY = Machine(0.4, 2), Machine(18.2, 2)
BOOT = {"name": "GET /boot", "good": 12, "success_rate": 0.02}
PLAY = {"name": "GET /play", "good": 75, "success_rate": 1.0}


def status(seen: int, well: int, spans: int = 1_000) -> dict[str, int]:
    return {"outcomes": seen, "went_well": well, "spans": spans}


def test_traffic_says_what_is_seen_and_what_is_missing() -> None:
    assert traffic_so_far([PLAY, BOOT], status(130, 87), 60, IDLE) == (
        "Watching traffic: seen 130, went well 87, needed 60 of a class: "
        "GET /boot has 12 (2% of the newest go well), GET /play has 60."
    )


@pytest.mark.parametrize(
    ("seen", "machine", "why"),
    [
        (status(0, 0, spans=0), IDLE, "No span of a service has come yet."),
        (status(0, 0), BUSY, "No device has said yet how a request went."),
        (status(636, 0), BUSY, "too slow for it (load 18.2 on 2 cores)"),
        (status(636, 0), IDLE, "Most requests fail although nothing is injected."),
    ],
)
def test_traffic_says_what_is_in_the_way(seen: dict[str, int], machine: Machine, why: str) -> None:
    said = traffic_so_far([], seen, 60, machine)

    assert said.startswith(f"Watching traffic: seen {seen['outcomes']}, went well 0, needed 60")
    assert why in said


def test_good_traffic_needs_no_excuse() -> None:
    assert "slow" not in traffic_so_far([], status(636, 600), 60, BUSY)


def test_a_campaign_that_does_not_end_says_why() -> None:
    waiting = {"name": "GET /boot", "waiting": "too few devices", "open": 3}
    done = {"name": "GET /play", "waiting": "", "open": 0}
    campaign = {"state": "running", "waiting": "", "not_yet": {}, "classes": [waiting, done]}

    assert why_not_done(campaign, "", BUSY).splitlines() == [
        "  GET /boot: too few devices",
        "  Hypotheses left open: 3 on GET /boot",
        "  This machine is busy: load 18.2 on 2 cores",
    ]
    seen = traffic_so_far([], status(636, 0), 60, BUSY)
    assert why_not_done({**campaign, "classes": []}, seen, BUSY).strip() == seen


def test_logs_stay_where_the_demo_fails_and_nowhere_else(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def kept(error: type[BaseException] | None, *, differs: bool = False) -> bool:
        folders: list[Path] = []
        try:
            with demo._folder(console()) as folder:
                folders.append(folder.path)
                (folder.path / "ldfi.log").write_text("it went wrong")
                folder.wanted = differs
                if error is not None:
                    raise error
        except (ExperimentsError, RuntimeError, KeyboardInterrupt):
            pass
        return folders[0].exists() and str(folders[0]) in capsys.readouterr().out

    assert kept(ExperimentsError)
    assert kept(RuntimeError)
    assert not kept(KeyboardInterrupt)
    assert not kept(None)
    assert kept(None, differs=True)


class Service:
    """What the demo asks: a service that has seen much of which nothing went well."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        return self._campaign("running")

    def get(self, path: str) -> Any:
        if path == "/status":
            return status(636, 0)
        if path == "/classes":
            return []
        self.looks -= 1
        return self._campaign("running" if self.looks else "finished")

    def page(self, path: str, limit: int | None) -> dict[str, Any]:
        return {"items": [], "cursor": None}

    def _campaign(self, state: str) -> dict[str, Any]:
        return {"id": "c", "state": state, "waiting": "", "not_yet": {}, "classes": []}


def waited(looks: int, limit: float, folder: Path) -> None:
    client = cast(Client, Service(looks))
    demo.run(client, Processes(folder), {"min_traffic": 60}, limit, console())


def test_what_is_waited_for_is_said_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    waited(2, 60, tmp_path)

    assert capsys.readouterr().out.count("seen 636, went well 0, needed 60 of a class") == 1


def test_a_demo_that_gives_up_says_the_measured_reason(tmp_path: Path) -> None:
    with pytest.raises(ExperimentsError, match="seen 636, went well 0, needed 60 of a class"):
        waited(99, 0.5, tmp_path)


SLOW = Asking(asked=10.4, wanted=104.0, took=1.31)


def test_fewer_devices_are_said_with_what_was_measured() -> None:
    assert slowed(SLOW, BUSY) == (
        "This machine is too slow (load 18.2 on 2 cores), going on with fewer devices: "
        "10.4 of 104 requests a second, half of them answered within 1.3 s."
    )
    assert str(Asking(10.4, 104.0, took=0.012)).endswith("answered within 12 ms")
    assert slowed(Asking(100.0, 104.0), BUSY) == ""
    assert slowed(None, BUSY) == ""
    assert "going on with fewer devices" in traffic_so_far([], status(636, 0), 60, BUSY, SLOW)


def test_a_demo_that_gives_up_says_what_it_found_and_how_few_requests_there_were() -> None:
    found = {"name": "GET /play", "waiting": "", "open": 2, "findings": [["refused@license"]]}
    campaign = {"state": "running", "waiting": "", "not_yet": {}, "classes": [found]}

    said = why_not_done(campaign, "", BUSY, SLOW)

    assert "Found on GET /play: refused@license" in said
    assert "10.4 of 104 requests a second" in said


def test_where_there_are_fewer_requests_more_of_them_are_treated() -> None:
    asked = {"treatment": 0.1, "window": 45.0}
    assert fitting(asked, None) == fitting(asked, Asking(104.0, 104.0)) == asked
    assert fitting(asked, Asking(52.0, 104.0)) == {"treatment": 0.2, "window": 45.0}
    assert fitting(asked, SLOW)["treatment"] == 0.3


def test_what_the_devices_say_is_heard_to_its_end() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream, os.fdopen(writing, "w") as said:
        heard = DevicesHeard(stream)
        assert heard.first(0.01) is None
        said.write('{"asked": 10.4, "wanted": 104.0, "took": 1.31}\n')
        said.flush()
        assert heard.first(20) == SLOW
    assert rates(104.0) == "boot=52,play=26,search=26"


def test_what_was_repaired_from_the_start_is_not_looked_for() -> None:
    assert demo.REPAIRED == repairs.VARIABLE
    everything = demo.planted("")
    assert len(everything) == 5
    left = demo.planted("play-license,search-spelling")
    assert set(everything.values()) - set(left.values()) == {"play-license", "search-spelling"}
    assert demo.planted(",".join(everything.values())) == {}


def test_a_weakness_that_there_is_not_is_named_with_those_there_are() -> None:
    with pytest.raises(Invalid, match=r"no weakness is named play: .*play-license"):
        demo.planted("play")
