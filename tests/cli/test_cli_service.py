"""Commands against the whole service over a socket, with traffic, as a person types them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.settings import Limits, Settings
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.testing.live_service import LiveService, live_service
from ldfi.testing.programs import Call, Caller, Step, Unserved
from ldfi.testing.world import FOUND, PROGRAM, World
from tests.kit.cli import PROGRAM as LDFI
from tests.kit.cli import At, ldfi_process
from tests.kit.service import GIVEN

QUICK = (
    *("--set", "treatment=0.3", "--set", "control=0.3"),
    *("--set", "settle=0.5", "--set", "follow=0", "--set", "apart=0", "--set", "min_traffic=50"),
)
BOOT = "GET /boot"
ASKED = Settings(
    kinds=("error",),
    treatment=0.3,
    control=0.3,
    max_union=None,
    settle=0.5,
    follow=0.0,
    apart=0.0,
    min_traffic=50,
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """A service in which a campaign is over; requests come while a test has ``traffic``."""
    url = f"sqlite:///{tmp_path_factory.mktemp('service') / 'ldfi.sqlite3'}"
    database, begun = Database(url), time.time() - 300
    limits = Limits(members_per_hour=100_000, members_per_day=100_000)
    world = World(database, engine=Engine(database, now=begun, limits=limits))
    world.now = begun
    world.steps(5)
    definition = Definition(ASKED, ("GET /b*",))
    world.finish(world.engine.scheduler.commands.start(definition, "kim", world.now))
    world.engine.scheduler.shut_down("the past is over", world.now)
    database.close()
    with live_service(database=url, tokens=GIVEN) as live:
        live.traffic = False
        yield live


@pytest.fixture
def traffic(service: LiveService) -> Iterator[LiveService]:
    """Devices and an edge, until the test ends."""
    service.traffic = True
    yield service
    service.traffic, service.programs = False, {"/boot": PROGRAM}


@pytest.fixture(scope="module")
def at(service: LiveService) -> At:
    return At(service.url)


@pytest.fixture(scope="module")
def campaign(at: At) -> dict[str, Any]:
    """The campaign that is over."""
    (finished,) = at.json("campaign", "list", "--state", "finished", "--limit", "1")["items"]
    found: dict[str, Any] = at.json("campaign", "show", finished["id"])
    return found


def begin(at: At, *words: str) -> subprocess.Popen[str]:
    """What a shell runs in the background ignores SIGINT, and so does all that it starts."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return subprocess.Popen(
            [*LDFI, *words],
            env={**os.environ, **at.env()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def repair(service: LiveService) -> None:
    """Let the application do without its layout."""
    optional = Step("optional", (Call("layout"),))
    service.programs = {"/boot": Call("root", (*PROGRAM.steps[:2], optional))}


def until(condition: Callable[[], Any], seconds: float = 120.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"it never came within {seconds:.0f} s")


@pytest.mark.long
def test_a_campaign_watched_to_its_end_shows_its_verdicts() -> None:
    words = ("campaign", "start", "--class", "GET /b*", "--kind", "error", *QUICK)
    with live_service(tokens=GIVEN) as alone:
        env = At(alone.url).env()
        done = ldfi_process(*words, "--set", "max_union=null", "--watch", "--json", **env)
    assert done.returncode == 1, done.stderr
    document, shown = json.loads(done.stdout), done.stderr

    assert document["state"] == "finished"
    assert {tuple(each["faults"]) for each in document["found"]} == FOUND
    assert {each["state"] for each in document["found"]} == {"open"}
    assert "GET /boot harmful layout fails; treatment" in shown
    assert "control 0/" in shown
    assert "finding open playlist and popular both fail" in shown
    assert shown.count("campaign finished") == 1
    assert "\x1b" not in shown  # no terminal, so plain lines


def test_a_campaign_is_listed_and_shown(at: At, campaign: dict[str, Any]) -> None:
    identity = campaign["id"]
    listed = at.json("campaign", "list", "--state", "finished", "--all")

    assert identity in [each["id"] for each in listed["items"]]
    assert listed["cursor"] is None
    assert "nothing left to try" in at("campaign", "show", identity)
    assert at.json("campaign", "show", identity)["id"] == identity
    assert at.json("campaign", "watch", identity, code=1)["state"] == "finished"
    certificates = json.loads(at("certificate", "show", identity))
    assert [each["request_class"] for each in certificates] == [BOOT]


@pytest.mark.long
def test_a_campaign_that_decided_nothing_is_not_fine(at: At, traffic: LiveService) -> None:
    # Given a campaign whose one experiment uses up the members of the run, and they do not suffice
    undecided = ("--set", "alpha_tolerated=1e-5", "--set", "alpha_harmful=1e-5")
    bounds = ("--member-budget", "10", "--set", "verify=false")
    words = ("campaign", "start", "--class", BOOT, "--kind", "error", *QUICK, *undecided, *bounds)
    done = at.run(*words, "--watch")
    # Then it is not told as if all were well, wherever one looks
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stdout.split())
    assert "the campaign's budget is spent: " in said
    assert "hypotheses stay open (" in said
    assert "Nothing was found in what was decided." in said
    assert "Nothing was found that hurts" not in said
    identity = at.json("campaign", "list", "--limit", "1")["items"][0]["id"]
    shown = at.json("campaign", "show", identity)
    assert shown["ending"]["kind"] == "out of budget"
    assert shown["ending"]["left"][0]["words"] in " ".join(at("campaign", "show", identity).split())


def test_lists_end_at_their_limit_and_say_so(at: At, campaign: dict[str, Any]) -> None:
    words = ("campaign", "experiments", campaign["id"], "--limit", "2")
    done = at.run(*words)
    page = at.json(*words)

    assert len(page["items"]) == 2
    assert page["cursor"]
    assert page["items"][0]["id"] in done.stdout
    assert "--all" in done.stderr
    everything = at.json("campaign", "experiments", campaign["id"], "--all")
    assert len(everything["items"]) == campaign["experiments"]


@pytest.mark.parametrize("columns", [80, 120])
def test_an_experiment_side_by_side(at: At, campaign: dict[str, Any], columns: int) -> None:
    tried = at.json("experiment", "list", "--verdict", "harmful", "--class", BOOT)["items"][0]
    shown = replace(at, columns=columns)("experiment", "show", tried["id"])

    arms = tried["counts"]
    rows = {line.split("  ")[0].strip(): line.split() for line in shown.splitlines() if line}
    assert rows["devices"][1:] == [str(arms[arm]["devices"]) for arm in ("control", "treatment")]
    assert rows["failures"][1:] == [str(arms[arm]["failures"]) for arm in ("control", "treatment")]
    for name in ("failure rate", "latency p50", "latency p95", "latency p99", "difference"):
        assert name in rows
    assert "evidence" in rows
    assert max(map(len, shown.splitlines())) <= columns
    listed = replace(at, columns=columns)("experiment", "list", "--limit", "3")
    assert max(map(len, listed.splitlines())) <= columns


@pytest.mark.parametrize(
    ("faults", "verdict", "code"),
    [
        (["error@layout"], "harmful", 1),
        pytest.param(["error@ratings"], "tolerated", 0, marks=pytest.mark.long),
    ],
)
def test_one_experiment_watched_tells_its_verdict_by_its_exit_code(
    at: At, traffic: LiveService, faults: list[str], verdict: str, code: int
) -> None:
    words = ("experiment", "try", "--class", BOOT, *faults, *QUICK, "--watch")

    tried = at.json(*words, code=code)

    assert tried["verdict"] == verdict
    assert tried["hypothesis"] == faults


@pytest.mark.long
def test_an_experiment_that_is_called_off_is_inconclusive_and_not_tried_again(
    at: At, traffic: LiveService
) -> None:
    # Given an experiment that waits for approval, watched
    words = ("experiment", "try", "--class", BOOT, "error@ratings", *QUICK)
    process = begin(at, *words, "--set", "approve_above=0", "--watch")
    waiting = until(lambda: at.json("experiment", "list", "--state", "waiting")["items"])[0]
    # When it is called off
    at("experiment", "abort", waiting["id"], "--reason", "not today")
    # Then that is told, and its campaign is over
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert "not today" in said
    assert f"ldfi experiment approve {waiting['id']}" in said
    assert at.json("campaign", "show", waiting["campaign_id"])["state"] == "stopped"


def test_an_experiment_waits_until_it_is_approved_or_rejected(at: At, traffic: LiveService) -> None:
    words = ("experiment", "try", "--class", BOOT, "error@ratings", *QUICK)
    for answer in ("approve", "reject"):
        started = at.json(*words, "--set", "approve_above=0")
        waiting = until(lambda: at.json("experiment", "list", "--state", "waiting")["items"])[0]
        assert waiting["campaign_id"] == started["id"]
        reason = () if answer == "approve" else ("--reason", "no")
        at("experiment", answer, waiting["id"], *reason)
        assert at.run("campaign", "watch", started["id"]).returncode in {0, 3}


def test_a_page_opens_without_typing_a_token(at: At, campaign: dict[str, Any]) -> None:
    link = at("open", campaign["id"]).strip()
    with httpx.Client(trust_env=False) as browser:
        form = browser.get(link).raise_for_status().text
        names = ("csrf", "next", "link")
        fields = {name: re.findall(rf'name="{name}" value="([^"]*)"', form)[0] for name in names}
        page = browser.post(f"{at.url}/login", data=fields, follow_redirects=True)
    assert page.url.path == f"/campaigns/{campaign['id']}"
    assert at.json("open")["url"].startswith(f"{at.url}/login?link=")
    assert "has an id that is nothing" in at.refused("open", "nothing")


def test_findings_alone_is_the_list(at: At, campaign: dict[str, Any]) -> None:
    assert at.json("findings") == at.json("findings", "list")
    assert "error@playlist" in at("findings", "--limit", "10")
    at.refused("findings", "--nonsense")


def test_a_finding_is_shown_acknowledged_and_verified(
    at: At, campaign: dict[str, Any], traffic: LiveService
) -> None:
    found = next(e for e in at.json("findings")["items"] if e["faults"] == ["error@layout"])

    assert found["traces"][0] in at("findings", "show", found["id"])
    assert "is lost when" in at("findings", "show", found["id"])
    assert at("findings", "issue", found["id"], "--for", "jira").count("h3. ") >= 2
    assert at.json("findings", "issue", found["id"])["tracker"] == "github"
    at.refused("findings", "issue", found["id"], "--for", "bugzilla")
    at("findings", "ack", found["id"], "--note", "next sprint")
    at("findings", "link", found["id"], "https://tracker.example.org/SHOP-42")
    assert at.json("findings", "show", found["id"])["state"] == "acknowledged"
    shown = at("findings", "show", found["id"])
    assert "next sprint" in shown
    assert "https://tracker.example.org/SHOP-42" in shown
    at.refused("findings", "link", found["id"], "javascript:alert(1)")
    again = at.json("findings", "verify", found["id"], code=1)
    assert (again["experiment"]["purpose"], again["experiment"]["verdict"]) == ("verify", "harmful")
    assert again["finding"]["state"] == "acknowledged"


@pytest.mark.long
def test_a_repaired_finding_is_fixed_and_broken_again_it_has_regressed(
    at: At, campaign: dict[str, Any], traffic: LiveService
) -> None:
    found = next(e for e in at.json("findings")["items"] if e["faults"] == ["error@layout"])
    repair(traffic)
    # Then it is tried as it was found: with the settings of the campaign that found it
    fixed = at.json("findings", "verify", found["id"])
    assert fixed["finding"]["state"] == "fixed"
    asked = [
        at.json("campaign", "show", each["campaign_id"])["definition"]["settings"]
        for each in (found, fixed["experiment"])
    ]
    assert asked[0] == asked[1]
    # And when the repair is undone, it has regressed, and stays so until somebody knows
    traffic.programs = {"/boot": PROGRAM}
    said = at("findings", "verify", found["id"], code=1)
    assert f"It is regressed: finding {found['id']}." in said
    at("findings", "ack", found["id"], "--note", "again")


def test_a_verification_that_cannot_be_made_says_why(
    at: At, campaign: dict[str, Any], traffic: LiveService
) -> None:
    found = next(e for e in at.json("findings")["items"] if e["faults"] == ["error@layout"])
    window = at.json("maintenance", "open", "--reason", "upgrade")
    try:
        done = at.run("findings", "verify", found["id"], "--within", "1s")
    finally:
        at("maintenance", "close", window["id"])

    assert done.returncode == 3, (done.stdout, done.stderr)
    assert "It was never tried: maintenance of everything by operator: upgrade" in done.stdout
    assert f"Nobody can say whether it is fixed; it is {found['state']}" in done.stdout
    assert at.json("campaign", "list", "--state", "running")["items"] == []


def test_what_one_more_failure_would_do(at: At, campaign: dict[str, Any]) -> None:
    answers = at.json("whatif", "--down", "playlist", code=1)
    assert answers[0]["hurts"] == ["layout", "popular"]
    shown = at("whatif", "--down", "playlist", code=1)
    assert "safe    1 point" in shown
    assert "ratings" not in shown
    assert "ratings" in at("whatif", "--down", "playlist", "--verbose", code=1)
    assert "the outage is enough" in at("whatif", "--down", "layout", code=1)
    assert "No request class" in at("whatif", "--down", "plailist", code=3)


def test_the_gate_of_an_upgrade(at: At, campaign: dict[str, Any], traffic: LiveService) -> None:
    gate = ("maintenance", "gate", "--down")
    assert "Go: proved safe, with ratings down." in at(*gate, "ratings")
    assert "hurts with or without this step: layout" in at(*gate, "ratings")
    refused = at.json(*gate, "playlist", code=1)
    assert refused["why"] == ["GET /boot: one more failure would hurt: popular"]
    # No request has come to the fallback of late, unless an experiment has just sent one there
    at(*gate, "playlist", "--spare", "0", "--if-unknown", "allow")
    # What nobody knows stops a pipeline, unless it is told otherwise
    assert "no request class is known to call plailist" in at(*gate, "plailist", code=3)
    at(*gate, "plailist", "--if-unknown", "refuse", code=1)
    at(*gate, "plailist", "--if-unknown", "allow")
    # And what is down already counts
    window = at.json("maintenance", "open", "--down", "play*", "--reason", "upgrade")
    try:
        assert "the outage by itself hurts" in at(*gate, "popular", "--spare", "0", code=1)
    finally:
        at("maintenance", "close", window["id"])
    at(*gate, "popular", "--spare", "0")


@pytest.mark.long
def test_a_step_is_watched_until_somebody_suffers_or_it_is_over(
    at: At, traffic: LiveService
) -> None:
    words = ("maintenance", "open", "--down", "playlist", "--reason", "upgrade")
    calm = at.json(*words, "--for", "3s", "--watch")
    assert not calm["open"]
    assert calm["suffers"] == []
    assert [each["request_class"] for each in calm["classes"]] == ["GET /boot"]
    assert calm["classes"][0]["requests"] > 100

    window = at.json(*words, "--for", "2m")
    watching = begin(at, "maintenance", "watch", window["id"])
    try:
        until(lambda: at.json("maintenance", "list")["items"][0]["id"] == window["id"])
        time.sleep(1.0)
        traffic.programs = {"/boot": lambda request: request.call("playlist", _broken)}
        said, _ = watching.communicate(timeout=40)
    finally:
        at("maintenance", "close", window["id"])
    assert watching.returncode == 1, said
    assert "Stop: the step hurts" in said
    assert re.search(r"GET /boot: \d+ of \d+ requests", said)
    assert "gone fails now" in said
    at.refused("maintenance", "watch", "nope")


def _broken(request: Caller) -> None:
    """Call something besides what the step takes down, which is gone."""
    request.call("gone", _fail)


def _fail(_: Caller) -> None:
    raise Unserved("gone")


def test_maintenance_opens_for_a_while_and_closes(at: At) -> None:
    words = ("--down", "ratings", "--down", "play*", "--for", "15m", "--reason", "upgrade")
    window = at.json("maintenance", "open", *words, "--owner", "ann")

    assert window["until"] - window["opened_at"] == pytest.approx(900)
    assert (window["owner"], window["down"]) == ("ann", ["ratings", "play*"])
    assert "play*" in at("maintenance", "list")
    assert "upgrade" in at("status")
    at("maintenance", "close", window["id"])
    assert at.json("maintenance", "list")["items"][0]["closed_at"]
    at.refused("maintenance", "close", "nope")


def test_a_scheduled_campaign_is_shown_with_its_next_run_and_stopped(
    at: At, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("name: nightly\nmax_size: 1\ncalendar: {days: [sat]}\n")
    words = ("--cron", "0 9 * * mon", "--timezone", "Europe/Berlin", "--hours", "09:00-16:00")
    campaign = at.json("campaign", "start", "--file", str(file), "--max-size", "2", *words)

    definition = campaign["definition"]
    assert (campaign["state"], campaign["name"]) == ("scheduled", "nightly")
    assert definition["settings"]["max_size"] == 2
    assert definition["calendar"]["days"] == ["sat"]
    assert definition["calendar"]["hours"] == ["09:00", "16:00"]
    assert definition["schedule"]["timezone"] == "Europe/Berlin"
    assert "next run" in at("campaign", "show", campaign["id"])
    at("campaign", "stop", campaign["id"], "--reason", "not needed")
    assert at.json("campaign", "watch", campaign["id"], code=3)["reason"] == "not needed"
    assert "not needed" in at("audit", "--subject", campaign["id"])


@pytest.mark.long
def test_an_interrupted_watch_leaves_the_campaign_alone(at: At) -> None:
    words = ("campaign", "start", "--class", "GET /nothing", "--name", "patient", "--watch")
    process = begin(at, *words)
    running = until(lambda: at.json("campaign", "list", "--state", "running")["items"])[0]
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)

    said, _ = process.communicate(timeout=60)

    assert process.returncode == 130
    assert f"ldfi campaign watch {running['id']}" in said
    assert at.json("campaign", "show", running["id"])["state"] == "running"
    at("campaign", "pause", running["id"], "--reason", "lunch")
    assert "lunch" in at("campaign", "show", running["id"])
    at("campaign", "resume", running["id"])
    assert "not held" in at.refused("campaign", "release", running["id"], BOOT)
    at("campaign", "stop", running["id"], "--reason", "done")


def test_halt_and_resume_are_in_status_and_audit(at: At) -> None:
    at("halt", "release 42")
    assert at.json("status")["halted"] == "release 42"
    assert "release 42" in at("status")
    assert "ldfi resume" in at.refused("campaign", "start")
    at("resume")
    assert at.json("status")["halted"] is None
    assert [each["what"] for each in at.json("audit", "--limit", "2")["items"]] == [
        "resume",
        "halt",
    ]


def test_a_service_with_traffic_lacks_nothing_but_a_larger_share(
    at: At, campaign: dict[str, Any], traffic: LiveService
) -> None:
    done = at.run("doctor", "--json")
    found = json.loads(done.stdout)
    well = {each["about"]: each["well"] for each in found}

    assert {name for name in well if well[name] is False} <= {"class", "traces"}, found
    assert done.returncode == (3 if False in well.values() else 0)
    assert (well["token"], well["spans"], well["edges"], well["classes"]) == (True,) * 4


def test_classes_by_pattern(at: At, campaign: dict[str, Any]) -> None:
    assert [each["name"] for each in at.json("classes", "GET /b*")] == [BOOT]
    assert BOOT in at("classes")
    assert "No class" in at("classes", "POST *")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("campaign", "show", "nope"), "nope"),
        (("campaign", "start", "--max-size", "9"), "max_size: must be at most 4, got 9"),
        (("campaign", "start", "--set", "colour=1"), "colour"),
        (("campaign", "start", "--timezone", "UTC"), "--cron"),
        (("campaign", "start", "--hours", "9"), "09:00-16:00"),
        (("experiment", "try", "--class", BOOT, "error@layot"), "error@layot"),
        (("experiment", "approve", "nope"), "nope"),
        (("maintenance", "open", "--for", "2y", "--reason", "x"), "90s"),
    ],
)
def test_what_cannot_be_is_usage_and_says_why(at: At, words: tuple[str, ...], said: str) -> None:
    assert said in at.refused(*words)
