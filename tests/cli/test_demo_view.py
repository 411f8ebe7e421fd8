"""The demo in a terminal: what it says while it runs, what it draws, and how it ends."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest

from ldfi.cli import demo, demo_run, demo_worlds, exits
from ldfi.cli.client import Client
from ldfi.cli.demo_picture import picture, pictures
from ldfi.cli.demo_view import (
    WIDTH,
    missing,
    sentences,
    traffic_line,
    tried,
    verdict_line,
)
from ldfi.cli.demo_worlds import LARGE_ARM, SHOP, STREAMING, DemoWorld
from ldfi.cli.processes import Processes
from ldfi.cli.terminal import console
from ldfi.demo import repairs
from ldfi.demo.worlds import WORLDS
from ldfi.errors import ExperimentsError, Invalid

LAYOUT = "shop>http:GET:layout/layout"
OFFERS = "shop>http:GET:offers/offers"
CACHE = "shop>http:GET:offers-cache/offers"
STOCK = "shop>http:GET:stock/stock"
LEVELS = "stock>http:GET:stockdb/levels"
ARRIVALS = "stock>http:GET:stockdb/arrivals"


def refused(*points: str) -> list[str]:
    return [f"refused@{point}" for point in points]


def experiment(verdict: str | None, faults: list[str], **more: Any) -> dict[str, Any]:
    return {
        "request_class": "GET /checkout",
        "verdict": verdict,
        "reason": "evidence",
        "purpose": "explore",
        "hypothesis": faults,
        "faults": faults,
        "armed_at": 1_000.0,
        "ended_at": 1_047.0,
        "counts": {
            "treatment": {"devices": 12, "failures": 0 if verdict == "tolerated" else 12},
            "control": {"devices": 29, "failures": 0},
        },
        **more,
    }


def test_traffic_is_drawn_as_far_as_it_has_come() -> None:
    assert re.sub(" +", " ", str(traffic_line({}, 60, 1.4))) == (
        f" watching traffic {'░' * 20} 0 of 60 requests 1 s"
    )
    some = str(traffic_line({"GET /home": 30, "GET /checkout": 12}, 60, 3))
    assert "█" * 10 + "░" * 10 in some
    assert "30 of 60 requests of GET /home" in some
    assert "60 of 60" in str(traffic_line({"GET /home": 99}, 60, 3))
    assert len(some) == WIDTH


@pytest.mark.parametrize(
    ("faults", "shared", "said"),
    [
        (refused(LAYOUT), (), "layout refused"),
        (refused(CACHE, OFFERS), (), "offers and offers-cache refused together"),
        (["down@stockdb"], (), "stockdb down"),
        (refused(LEVELS), {"stockdb"}, "stockdb/levels refused"),
        (
            ["down@stockdb", *refused(STOCK, LEVELS)],
            {"stockdb"},
            "stock refused and stockdb down together",
        ),
        (
            refused(LAYOUT, OFFERS, CACHE, STOCK),
            (),
            "layout, offers and offers-cache refused and 1 more together",
        ),
        ([f"delay@{LAYOUT}", "delay@api>function:session"], (), "layout and session slow together"),
    ],
)
def test_what_was_tried_is_told_by_three_names_at_most(
    faults: list[str], shared: set[str], said: str
) -> None:
    assert tried(faults, shared) == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            experiment("tolerated", refused(STOCK)),
            "survived stock refused (12 of 12 fine, 29 beside them)",
        ),
        (experiment("harmful", refused(STOCK)), "HURTS stock refused (12 of 12 failed)"),
        (
            experiment("harmful", refused(STOCK), purpose="confirm"),
            "HURTS stock refused again (12 of 12 failed)",
        ),
        (
            experiment("harmful", refused(OFFERS, CACHE)),
            "HURTS offers and offers-cache refused together",
        ),
        (
            experiment("inconclusive", refused(STOCK), reason="window over; 1 was cut"),
            "undecided stock refused (window over)",
        ),
        (
            experiment(
                "inconclusive",
                refused(STOCK),
                reason="stopped at the first failure, to try x alone",
            ),
            "hurt one stock refused",
        ),
        (
            experiment(None, refused(STOCK), reason="halted: x"),
            "called off stock refused (halted: x)",
        ),
    ],
)
def test_a_verdict_is_one_line_of_what_fits(given: dict[str, Any], said: str) -> None:
    line = str(verdict_line(given, 1_000.0))

    assert re.sub(" +", " ", line) == f" GET /checkout {said} 47 s"
    assert len(line) == WIDTH


def test_a_verdict_on_many_long_names_still_fits() -> None:
    long = refused(*(f"api>http:GET:{name * 12}/x" for name in ("abc", "def", "ghi")))
    assert len(str(verdict_line(experiment("harmful", long), 0.0))) <= WIDTH


def test_the_tree_shows_what_is_needed_and_what_is_not() -> None:
    lines = picture([LAYOUT, OFFERS, CACHE], [refused(CACHE, OFFERS)], [OFFERS, LAYOUT])

    assert [str(each) for each in lines] == [
        "    shop ─┬─ layout ·         can be missing",
        "          ├─ offers ✗         needed when offers-cache fails",
        "          └─ offers-cache ✗   needed when offers fails",
    ]
    spans = [(line, span) for line in lines for span in line.spans if "red" in str(span.style)]
    red = {line.plain[span.start : span.end] for line, span in spans}
    assert {"offers ✗", "offers-cache ✗"} <= red
    assert "layout ·" not in red


def test_the_tree_goes_as_deep_as_calls_do_and_says_what_nobody_knows() -> None:
    lines = picture([LAYOUT, STOCK, LEVELS, ARRIVALS], [["down@stockdb"]], [STOCK])

    assert [str(each) for each in lines] == [
        "    shop ─┬─ layout ?         undecided",
        "          └─ stock · ── stockdb ✗ needed",
    ]


def test_services_that_call_each_other_are_drawn_once() -> None:
    calls = ["shop>http:GET:a/x", "a>http:GET:b/x", "b>http:GET:a/y"]
    (line,) = picture(calls, [], [])
    assert str(line) == "    shop ── a ? ── b ?        undecided"


def result(*found: str, planted: tuple[str, ...] = ("one", "two"), **more: Any) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [
        {"class": "GET /home", "faults": refused(f"shop>http:GET:{name}/x"), "weakness": name}
        for name in planted
    ]
    rows += [
        {"class": "GET /home", "faults": refused(f"shop>http:GET:{name}/x"), "weakness": None}
        for name in found
        if name not in planted
    ]
    for row in rows:
        row["found"] = row["faults"][0].split(":")[2].partition("/")[0] in found
    return {
        "comparison": rows,
        "findings": [row["faults"] for row in rows if row["found"]],
        "matched": set(found) == set(planted),
        "decided": True,
        "experiments": 15,
        "devices": {"treated": 60, "reached": 41, "hurt": 11},
        "seconds": 52.3,
        **more,
    }


def test_three_sentences_say_what_it_came_to() -> None:
    assert [str(each) for each in sentences(result("one", "two"))] == [
        "2 weaknesses found, exactly the 2 planted.",
        "15 experiments in 52 s.",
        "41 devices met a failure, 11 of them were hurt.",
    ]
    first, *_ = sentences(result("one", "odd"))
    assert str(first) == "2 weaknesses found, 1 of the 2 planted. Not found: two."


def test_each_class_is_told_by_what_it_is_lost_without() -> None:
    tolerated = {**experiment("tolerated", refused(OFFERS)), "request_class": "GET /home"}
    found = {**result("one"), "findings": [refused(LAYOUT)]}
    found["comparison"] = [{"class": "GET /home", "faults": refused(LAYOUT), "found": True}]
    harmful = {**experiment("harmful", refused(LAYOUT)), "request_class": "GET /home"}
    lines = [str(each) for each in pictures([tolerated, harmful], found)]

    assert lines[:2] == ["What hurts", "GET /home is lost when layout does not answer"]
    assert any("offers ·" in each for each in lines)


def test_what_is_missing_is_said() -> None:
    open_ = {"name": "GET /home", "open": 3}
    assert missing({"classes": [open_], "not_yet": {"GET /checkout": "12 good"}}, 60, {}) == [
        "Combinations left to try: 3 on GET /home.",
        "Not begun: GET /checkout (12 good).",
    ]
    assert missing({"classes": [], "not_yet": {}}, 60, {"GET /home": 12}) == [
        "Too few requests went well to begin: GET /home had 12 of 60."
    ]
    assert "none was seen" in missing({"classes": [], "not_yet": {}}, 60, {})[0]


def test_a_status_tells_right_from_wrong_and_both_from_undecided() -> None:
    assert demo.exit_status({"matched": True, "decided": True}) == exits.FINE
    assert demo.exit_status({"matched": True, "decided": False}) == exits.FINE
    assert demo.exit_status({"matched": False, "decided": True}) == exits.FOUND
    assert demo.exit_status({"matched": False, "decided": False}) == exits.INCONCLUSIVE


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
    """What the demo asks: a service with a class that is explored, and never to its end."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.stopped = False

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        self.stopped |= path.endswith("/stop")
        return self._campaign("running")

    def get_all(self, path: str) -> list[dict[str, Any]]:
        assert path == "/classes"
        return [{"name": "GET /checkout", "good": 77, "shared": {}}]

    def get(self, path: str) -> Any:
        self.looks -= 1
        if self.stopped:
            return self._campaign("stopped")
        return self._campaign("running" if self.looks else "finished")

    def page(self, path: str, limit: int | None) -> dict[str, Any]:
        return {"items": [experiment("harmful", refused(STOCK))], "cursor": None}

    def _campaign(self, state: str) -> dict[str, Any]:
        explored = {"name": "GET /checkout", "open": 2, "running": None, "waiting": None}
        return {"id": "c", "state": state, "waiting": "", "not_yet": {}, "classes": [explored]}


def ran(service: Service, limit: float, folder: Path) -> demo_run.Ran:
    return demo_run.run(
        cast(Client, service), Processes(folder), {"min_traffic": 60}, limit, console()
    )


def test_a_campaign_is_shown_line_by_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert ran(Service(2), 60, tmp_path).left == []

    said = capsys.readouterr().out
    assert said.count("60 of 60 requests") == said.count("HURTS") == 1


def test_a_campaign_that_finds_no_end_is_stopped_and_says_what_is_missing(tmp_path: Path) -> None:
    service = Service(1_000_000)
    over = ran(service, 0.5, tmp_path)

    assert service.stopped
    assert over.campaign["state"] == "stopped"
    assert len(over.experiments) == 1
    assert over.left == ["Combinations left to try: 2 on GET /checkout."]


@pytest.mark.parametrize("world", [SHOP, STREAMING], ids=lambda each: each.name)
def test_a_world_is_one_of_the_applications(world: DemoWorld) -> None:
    application = WORLDS[world.name]
    assert world.kinds.keys() == application.rates.keys()
    assert sum(world.kinds.values()) == 1
    named = re.findall(r"@(?:[^>]*>http:[A-Z]+:)?([\w-]+)", str(world.planted("")))
    assert set(named) <= set(application.names)


def test_where_there_are_fewer_requests_more_of_them_are_treated() -> None:
    assert STREAMING.fitted(1.0) == STREAMING.campaign
    assert STREAMING.fitted(0.5)["treatment"] == 0.2
    assert STREAMING.fitted(0.05)["treatment"] == STREAMING.fitted(0.0)["treatment"] == LARGE_ARM
    assert STREAMING.rates(104.0) == "boot=52,play=26,search=26"


def test_what_was_repaired_from_the_start_is_not_looked_for() -> None:
    assert demo_worlds.REPAIRED == repairs.VARIABLE
    everything = STREAMING.planted("")
    assert (len(everything), len(SHOP.planted(""))) == (5, 3)
    left = STREAMING.planted("play-license,search-spelling")
    assert set(everything.values()) - set(left.values()) == {"play-license", "search-spelling"}
    assert STREAMING.planted(",".join(everything.values())) == {}


def test_a_weakness_that_there_is_not_is_named_with_those_there_are() -> None:
    with pytest.raises(Invalid, match=r"no weakness is named play: .*play-license"):
        STREAMING.planted("play")
