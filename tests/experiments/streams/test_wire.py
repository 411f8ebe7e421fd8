from __future__ import annotations

import json
from dataclasses import fields

import pytest

from ldfi.errors import UnreadableMessage
from ldfi.experiments.domain.traffic.cut_traces import CutRequest
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.experiments.streams import wire
from ldfi.experiments.streams.wire import (
    Halves,
    ObservationReader,
    ObservationWriter,
    read_cut,
    read_event,
    read_hole,
    read_mark,
    read_outcome,
    read_report,
    read_told,
    write_cut,
    write_event,
    write_hole,
    write_mark,
    write_outcome,
    write_report,
    write_told,
)
from ldfi.fit.protocol.mark import Mark
from ldfi.lineage.killed_process import Death
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.loose_calls import Event
from ldfi.lineage.operation import Operation
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.span import Trace
from ldfi.testing.spans import TRACE, lineage, span
from tests.kit.streams import request

HALVES = Halves(7, 8, 1, 2)
FIELDS = [name for name in Lineage.__slots__ if name != "trace"]


def observation(trace_id: str, experiment: str = "") -> Observation:
    *spans, metric = request(trace_id, experiment=experiment)
    found = [span for each in spans for span in decode_protobuf(each.value).spans]
    learned = learn(Trace.of(trace_id, found))
    assert learned is not None
    return Observation(learned, read_outcome(metric.value))


@pytest.mark.parametrize("experiment", ["", "an-experiment"])
def test_everything_that_is_known_of_a_request_comes_through(experiment: str) -> None:
    # Given two requests that went the same way
    writer, reader = ObservationWriter(), ObservationReader()
    for number in (1, 2):
        written = observation(f"{number:032x}", experiment)
        # When one is written and read
        read, halves = reader.read(writer.write(written, HALVES))
        # Then nothing is lost, the tree included
        assert halves == HALVES
        assert read.outcome == written.outcome
        for name in FIELDS:
            assert getattr(read.lineage, name) == getattr(written.lineage, name), name
        assert _tree(read.lineage) == _tree(written.lineage)
        assert read.lineage.support
        assert read.lineage.experiment == experiment


def test_a_reply_that_was_taken_in_by_a_link_is_one_on_the_wire_too() -> None:
    ms = 1_000_000
    receive = span("receive", "root", "internal", at=(3 * ms, 8 * ms))
    run = lineage(
        span("root", kind="server", at=(0, 20 * ms)),
        span("send", "root", "producer", at=(1, 2)),
        span("take", "send", "consumer", "worker", at=(3, 10**12), point="take"),
        span("reply", "take", "producer", "worker", at=(6 * ms, 7 * ms), point="reply"),
        receive._replace(links=((TRACE, "reply"),)),
    )
    assert "reply" in run.support
    written = Observation(run, Outcome(TRACE, "d", "m", True))
    read = ObservationReader().read(ObservationWriter().write(written, HALVES)).observation
    assert (read.lineage.support, read.lineage.detached) == (run.support, run.detached)


RECORDED = (
    b'["55555555555555555555555555555555",1800000000000000001,0.000999998,3,'
    b'["a device","m",false,"PLAYBACK-7",0.1],[7,8,1,2]]\n'
    b'[[["0000000000000001",null,1800000000000000001,1800000000000999999,0],'
    b'["0000000000000002","0000000000000001",1800000000000000002,1800000000000999998,1],'
    b'["000000000000000a","0000000000000002",1800000000000000010,1800000000000999990,2]],'
    b'[["api","GET /home","server",false,false,null,"","GET /home",'
    b'{"method":"GET","path":"/home"},[],[],"an-experiment","treatment",false,'
    b'[["method","GET"],["target","/home"],["status","200"],["experiment","an-experiment"],'
    b'["arm","treatment"]]],'
    b'["api","GET /ratings","client",true,false,"api>http:GET:ratings/ratings","","",'
    b'{"method":"GET","path":"/ratings"},["error"],["delay"],"","",false,'
    b'[["method","GET"],["target","/ratings"],["status","200"],'
    b'["point","api>http:GET:ratings/ratings"]]],'
    b'["ratings","GET /ratings","server",false,false,null,"","GET /ratings",'
    b'{"method":"GET","path":"/ratings"},[],[],"","",false,'
    b'[["method","GET"],["target","/ratings"],["status","200"]]]]]'
)
"""An observation as it is in topics already."""


def test_what_is_in_topics_already_is_read_and_written_as_it_was() -> None:
    read, halves = ObservationReader().read(RECORDED)

    assert halves == HALVES
    assert read.outcome == Outcome("5" * 32, "a device", "m", False, "PLAYBACK-7", 0.1)
    lineage, point = read.lineage, "api>http:GET:ratings/ratings"
    assert (lineage.trace_id, lineage.start) == ("5" * 32, 1_800_000_000_000_000_001)
    assert (lineage.duration, lineage.spans) == (0.000999998, 3)
    assert (lineage.service, lineage.route) == ("api", "GET /home")
    assert (lineage.experiment, lineage.arm) == ("an-experiment", "treatment")
    assert lineage.called == lineage.failed == {point}
    assert lineage.fired == {f"error@{point}"}
    assert lineage.would_fire == {f"delay@{point}"}
    assert dict(lineage.callees) == {point: "ratings"}
    operations = [span.operation for span in lineage.trace.spans]
    assert operations[1].fields[0] == ("method", "GET")
    assert ObservationWriter().write(read, halves) == RECORDED


def test_what_a_later_version_adds_is_passed_over() -> None:
    # Given an observation with one more field behind the last one, wherever there may be
    head, shape = (json.loads(line) for line in RECORDED.splitlines())
    rows, operations = shape
    links = [*([] if len(rows[0]) > 5 else [[]]), "new"]
    shape = [[[*row, *links] for row in rows], [[*each, "new"] for each in operations], "new"]
    *fields, outcome, halves = head
    head = [*fields, [*outcome, False, "new"], [*halves, "new"], "new"]
    later = b"\n".join(json.dumps(line).encode() for line in (head, shape))
    # When a reader of today reads it
    read = ObservationReader().read(later, [("version", b"1"), ("new", b"?")])
    # Then it finds what it knows
    known = ObservationReader().read(RECORDED)
    assert read.halves == known.halves
    assert read.observation.outcome == known.observation.outcome
    for name in FIELDS:
        assert getattr(read.observation.lineage, name) == getattr(known.observation.lineage, name)


def test_a_version_that_nobody_knows_is_refused_by_its_number() -> None:
    with pytest.raises(UnreadableMessage, match="version 2, and this reader knows 1"):
        ObservationReader().read(RECORDED, [("version", b"2")])


def test_all_of_an_operation_is_written() -> None:
    assert tuple(each.name for each in fields(Operation)) == wire._OPERATION


def test_requests_of_one_shape_share_what_was_learned() -> None:
    writer, reader = ObservationWriter(), ObservationReader()
    one, two = (
        reader.read(writer.write(observation(f"{number:032x}"), HALVES)).observation.lineage
        for number in (1, 2)
    )
    assert one.callees is two.callees  # what the topology goes by
    assert one.trace_id != two.trace_id


@pytest.mark.parametrize(
    "value",
    [b"", b"{}", b"[1,2]\n[]", b"\xff\xfe", b'["t",1,1,1,["d","m",true,null,0],[1,2]]\n[[],[]]'],
)
def test_what_is_no_observation_is_refused(value: bytes) -> None:
    with pytest.raises(UnreadableMessage):
        ObservationReader().read(value)


def test_a_device_metric_comes_through() -> None:
    outcome = Outcome("ab" * 16, "device", "member", False, "PLAYBACK-7", 1.5)
    assert read_outcome(write_outcome(outcome)) == outcome
    degraded = Outcome("ab" * 16, "device", "member", True, degraded=True)
    assert read_outcome(write_outcome(degraded)) == degraded
    # And one that was written by a version which knew two outcomes
    older = json.loads(write_outcome(outcome))
    del older["degraded"]
    assert read_outcome(json.dumps(older).encode()) == outcome


HALF = b'{"trace_id":"\\ud800","device":"d","member":"m","success":true}'  # of a character


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"trace_id":"x"}', b"[" * 20_000, HALF])
def test_what_is_no_device_metric_is_refused(value: bytes) -> None:
    with pytest.raises(UnreadableMessage):
        read_outcome(value)


def _tree(lineage: Lineage) -> list[tuple[str, str, bool, int, int]]:
    found, pending = [], list(lineage.tree.calls)
    while pending:
        call = pending.pop()
        found.append((call.point, call.callee, call.failed, call.end - call.start, len(call.calls)))
        pending.extend(call.calls)
    return found


def test_a_report_of_an_injector_is_read_back_and_nothing_else_is_one() -> None:
    report = "1 python/0.2.0 库存服务>http:*"
    assert read_report(write_report(report)) == report
    assert read_report(write_cut(CutRequest("e1", "treatment", "t1"))) is None
    assert read_report(b'{"reach":') is None


def test_what_is_told_of_processes_is_read_back() -> None:
    mark = Mark("treatment", "e1", "5f1c", "refused", "库存服务>http:GET:b/c d")
    died = (Death("库存服务", mark, 17),)
    for cut in (CutRequest("e1", "control", "t1"), CutRequest("e1", "treatment", "t1", died)):
        assert read_cut(write_cut(cut), "t1") == cut
    assert read_mark(write_mark(mark, 17)) == (mark, 17)
    assert read_told(write_told("e1", died)) == ("e1", died)
    assert [read_mark(write_told("e1", died)), read_told(write_mark(mark, 17))] == [None, None]
    assert read_cut(b'{"cut":["e1","treatment"],"died":[[1]]}') is None


def test_what_traces_do_not_tell_comes_through_and_nothing_else_is_taken_for_it() -> None:
    event = Event("loose", "api", "stock", "api>http:GET:stock/*", 10, 20)
    assert read_event(write_event(event)) == event
    assert read_hole(write_hole("api", {"path": "/"})) == ("api", {"path": "/"})
    for said in (b"[]", b'{"event":', b'{"event":[1]}', b'{"event":["x","","","",1,2]}', b"{}"):
        assert read_event(said) is None
        assert read_hole(said.replace(b"event", b"hole")) is None
    assert read_cut(write_event(event)) is None
