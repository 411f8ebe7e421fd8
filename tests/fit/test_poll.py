from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Iterator
from http.client import HTTPResponse
from typing import Any

import pytest
from opentelemetry.instrumentation.utils import is_instrumentation_enabled

from ldfi.fit import poll as polling
from ldfi.fit.clock import steady
from ldfi.fit.poll import LONGEST_RETRY_SECONDS, MAX_DOCUMENT, RulesPoll
from ldfi.fit.protocol.allowance import Enrolled
from ldfi.testing import ControlPlane
from tests.fit.edges import a_rule, eventually


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def poll(plane: ControlPlane) -> Iterator[RulesPoll]:
    poll = RulesPoll(plane.url + "/", plane.token)
    yield poll
    poll.stop()


def armed(poll: RulesPoll) -> list[str]:
    return [rule.experiment for rule in poll.lease().rules]


def test_rules_come_and_leave_as_soon_as_they_change(plane: ControlPlane, poll: RulesPoll) -> None:
    poll.start()
    eventually(lambda: plane.polls)
    plane.put(a_rule("e1"))
    eventually(lambda: armed(poll) == ["e1"])
    plane.put()
    eventually(lambda: armed(poll) == [])
    assert {poll.authorization for poll in plane.polls} == {f"Bearer {plane.token}"}


def test_every_poll_bears_the_name_of_the_edge(plane: ControlPlane, poll: RulesPoll) -> None:
    poll.start()
    eventually(lambda: len(plane.polls) > 1)

    (name,) = {asked.edge for asked in plane.polls}
    assert re.fullmatch("[a-z0-9]{1,32}", name)
    assert name != RulesPoll(plane.url, "t").edge


def test_many_threads_start_one_poll(plane: ControlPlane, poll: RulesPoll) -> None:
    threads = [threading.Thread(target=poll.start) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(t.name == "fit-rules" and t is poll._thread for t in threading.enumerate()) == 1
    eventually(lambda: plane.polls)
    time.sleep(0.3)
    assert len(plane.polls) == 2  # the first is answered at once, the second waits


def test_a_thread_that_could_not_start_is_started_by_a_later_request(
    plane: ControlPlane, poll: RulesPoll, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", exhausted)
        with pytest.raises(RuntimeError):
            poll.start()
    poll.start()
    eventually(lambda: plane.polls)


class TestUse:
    def test_an_allowance_that_is_used_up_is_reported_within_about_a_second(
        self, plane: ControlPlane, poll: RulesPoll
    ) -> None:
        # Given an armed edge whose poll has just been sent off
        plane.put(a_rule("e1", members=2))
        poll.start()
        eventually(lambda: armed(poll))
        before = len(plane.polls)
        eventually(lambda: len(plane.polls) > before)
        # When its allowance is used up
        sent = len(plane.polls)
        for device in (1, 2):
            assert poll.allowances.admit("e1", "treatment", device)
        # Then the control plane hears of it, at the latest when that poll is over
        eventually(lambda: plane.polls[-1].used == "e1:2")
        told = [asked for asked in plane.polls[sent : sent + 2] if asked.used == "e1:2"]
        assert told[0].wait == 0.0
        # And it is not asked again and again for that
        count = len(plane.polls)
        time.sleep(0.5)
        assert len(plane.polls) <= count + 1

    def test_use_that_is_no_news_triggers_no_poll(
        self, plane: ControlPlane, poll: RulesPoll
    ) -> None:
        plane.put(a_rule("e1"))
        poll.start()
        eventually(lambda: armed(poll))
        time.sleep(0.2)
        count = len(plane.polls)
        for device in range(100):
            poll.allowances.admit("e1", "treatment", device)
            time.sleep(0.005)
        assert len(plane.polls) <= count + 1
        eventually(lambda: plane.polls[-1].used == "e1:100")

    def test_what_left_the_lease_is_reported_at_once_and_once(
        self, plane: ControlPlane, poll: RulesPoll
    ) -> None:
        plane.put(a_rule("e1"))
        poll.start()
        eventually(lambda: armed(poll))
        poll.allowances.admit("e1", "treatment", 1)
        plane.put()
        eventually(lambda: not armed(poll))
        gone = time.monotonic()
        eventually(lambda: plane.polls[-1].used == "e1:1" and plane.polls[-1].at >= gone - 0.05)
        eventually(lambda: plane.polls[-1].used == "")
        assert poll.allowances.report() == {}

    def test_what_left_the_lease_is_not_forgotten_before_the_report_is_answered(
        self, plane: ControlPlane, poll: RulesPoll
    ) -> None:
        plane.put(a_rule("e1"))
        poll._ask()
        poll.allowances.admit("e1", "treatment", 1)
        plane.put()
        poll._ask()
        plane.answer_with(status=503)
        with pytest.raises(OSError, match="503"):
            poll._ask()
        plane.answer_well()
        poll._ask()
        assert [asked.used for asked in plane.polls] == ["", "e1:1", "e1:1", "e1:1"]
        assert poll.allowances.report() == {}


class TestControlPlaneGone:
    def test_a_lease_ends_and_rules_come_back(self, plane: ControlPlane, poll: RulesPoll) -> None:
        plane.lease = 1.5
        plane.put(a_rule("e1"))
        poll.start()
        eventually(lambda: armed(poll))
        # When every answer is an error, the lease runs out by itself
        plane.answer_with(status=503)
        eventually(lambda: not armed(poll))
        # And what was treated is remembered until the control plane is back
        plane.answer_well()
        eventually(lambda: armed(poll))

    def test_a_lease_ends_by_a_clock_that_does_not_jump(
        self, plane: ControlPlane, poll: RulesPoll, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plane.lease = 60
        plane.put(a_rule("e1"))
        poll._ask()
        true_time = time.time
        monkeypatch.setattr(time, "time", lambda: true_time() - 3600)
        assert armed(poll) == ["e1"]
        monkeypatch.setattr("ldfi.fit.poll.steady", lambda: steady() + 60)
        assert armed(poll) == []

    def test_it_is_asked_ever_more_rarely_and_never_at_the_same_moment(self) -> None:
        pauses = [[polling._backoff(failures) for _ in range(50)] for failures in range(1, 12)]

        assert all(0.25 <= pause <= 0.5 for pause in pauses[0])
        assert all(LONGEST_RETRY_SECONDS / 2 <= each <= LONGEST_RETRY_SECONDS for each in pauses[9])
        assert all(len(set(each)) > 40 for each in pauses)
        assert polling._backoff(10**6) <= LONGEST_RETRY_SECONDS

    def test_an_early_answer_is_not_asked_again(self, plane: ControlPlane, poll: RulesPoll) -> None:
        plane.answer_with(b'{"version": "1", "lease_seconds": 5, "rules": []}')
        poll.start()
        time.sleep(0.55)
        assert 2 <= len(plane.polls) <= 7

    def test_it_is_said_once_not_every_time(
        self, poll: RulesPoll, plane: ControlPlane, caplog: pytest.LogCaptureFixture
    ) -> None:
        plane.answer_with(status=500)
        with caplog.at_level(logging.INFO, "fit"):
            poll.start()
            eventually(lambda: len(plane.polls) >= 3)
        assert len([r for r in caplog.records if "no rules" in r.message]) == 1
        assert plane.token not in caplog.text

    def test_a_stream_that_breaks_after_long_is_the_first_failure_again(
        self, poll: RulesPoll, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        # Given streams that are held for longer than any pause, and break
        monkeypatch.setattr(polling, "LONGEST_RETRY_SECONDS", 0.02)
        broken: list[float] = []

        def held() -> None:
            time.sleep(0.03)
            broken.append(time.monotonic())
            raise ConnectionResetError("the service was killed")

        monkeypatch.setattr(poll, "_listen", held)
        poll.start()
        eventually(lambda: len(broken) >= 5)
        # Then each is news
        assert len([r for r in caplog.records if "no rules" in r.message]) >= 4

    def test_a_log_handler_that_fails_does_not_end_the_polling(
        self, poll: RulesPoll, plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> None:
            raise OSError("disk full")

        monkeypatch.setattr(polling._log, "log", broken)
        plane.answer_with(status=500)
        poll.start()
        eventually(lambda: len(plane.polls) >= 2)


GARBAGE = {
    "no JSON": b"<html>",
    "no text": b"\xff\xfe\x00",
    "cut short": b'{"version": "1", "rules": [',
    "nothing": b"",
    "deep": b"[" * 100_000,
    "other JSON": b"[1, 2, 3]",
    "a bad rule": json.dumps({"version": "1", "lease_seconds": 9, "rules": [{}]}).encode(),
    "long numbers": b'{"version": "1", "lease_seconds": ' + b"9" * 5000 + b', "rules": []}',
    "huge": b" " * (MAX_DOCUMENT + 1),
}


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE)
def test_an_answer_that_is_not_understood_silences_the_edge(
    plane: ControlPlane, poll: RulesPoll, body: bytes
) -> None:
    # Given an armed edge
    plane.put(a_rule("e1"))
    poll.start()
    eventually(lambda: armed(poll))
    # When the control plane sends rubbish, the edge is quiet long before the lease ends
    plane.answer_with(body)
    eventually(lambda: not armed(poll))
    # And armed again when it is well again
    plane.answer_well()
    eventually(lambda: armed(poll))


def test_the_token_follows_no_redirect(plane: ControlPlane, poll: RulesPoll) -> None:
    with ControlPlane() as stranger:
        elsewhere = {"Location": f"{stranger.url}/api/v1/edge/rules"}
        plane.answer_with(status=302, headers=elsewhere)
        poll.start()
        eventually(lambda: len(plane.polls) >= 2)
        assert stranger.polls == []


def test_once_stopped_nothing_is_armed_any_more(plane: ControlPlane, poll: RulesPoll) -> None:
    plane.put(a_rule("e1"))
    poll._ask()
    assert armed(poll)
    poll.stop()
    poll._ask()
    assert not armed(poll)


def test_the_polls_make_no_spans(
    plane: ControlPlane, poll: RulesPoll, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    ask = RulesPoll._open

    def noting(self: RulesPoll, *asked: Any) -> HTTPResponse:
        seen.append(is_instrumentation_enabled())
        return ask(self, *asked)

    monkeypatch.setattr(RulesPoll, "_open", noting)
    poll.start()
    eventually(lambda: seen)
    assert seen[0] is False
    assert is_instrumentation_enabled()


@pytest.mark.parametrize(
    ("url", "token"), [("", "t"), ("http://x", ""), ("file:///etc/passwd", "t"), ("ldfi:8080", "t")]
)
def test_without_a_url_and_a_token_there_is_no_poll(
    monkeypatch: pytest.MonkeyPatch, url: str, token: str
) -> None:
    monkeypatch.setenv("LDFI_URL", url)
    monkeypatch.setenv("LDFI_TOKEN", token)
    assert RulesPoll.from_environment() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_worker_has_its_own_name_and_thread(plane: ControlPlane, poll: RulesPoll) -> None:
    # Given an edge that polls, holds a lease and has treated a device; and its lock is held
    plane.put(a_rule("e1", members=1))
    poll.start()
    eventually(lambda: armed(poll))
    poll.allowances.admit("e1", "treatment", 1)
    eventually(lambda: plane.polls[-1].used == "e1:1")
    reader, writer = os.pipe()
    with poll._lock, poll.allowances._lock:
        child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        _work_as_child(poll, writer)
    os.close(writer)
    # When a worker is forked off, it starts with no lease and a name of its own
    with os.fdopen(reader) as pipe:
        told = json.loads(pipe.read())
    assert os.waitpid(child, 0)[1] == 0
    assert told["lease_at_first"] == []
    assert told["edge"] != poll.edge
    # And polls by itself, and may treat what it is allowed
    assert told["armed"] == ["e1"]
    assert told["admitted"] == [True, False]
    by_child = [asked for asked in plane.polls if asked.edge == told["edge"]]
    assert by_child
    assert by_child[0].used == ""
    # While the parent goes on as before
    assert armed(poll) == ["e1"]
    assert poll.allowances.report() == {"e1": Enrolled(1)}


def _work_as_child(poll: RulesPoll, writer: int) -> None:
    code = 1
    try:
        at_first = armed(poll)
        poll.start()
        eventually(lambda: armed(poll))
        admitted = [poll.allowances.admit("e1", "treatment", device) for device in (2, 3)]
        told = {
            "lease_at_first": at_first,
            "edge": poll.edge,
            "armed": armed(poll),
            "admitted": admitted,
        }
        os.write(writer, json.dumps(told).encode())
        code = 0
    finally:
        os._exit(code)
