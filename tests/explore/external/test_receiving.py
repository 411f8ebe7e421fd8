"""Spans come in over HTTP, and a run's trace is waited for until it is whole."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import closing

import pytest

from ldfi.experiments.domain.traffic.waiting_times import Waiting
from ldfi.explore.external import session
from ldfi.explore.external.collector import Collector
from ldfi.explore.external.receiver import InvalidAddress, Receiver, is_loopback, split
from ldfi.explore.external.requests import SentRequest, as_call, lineage_of, root_span, unanswered
from ldfi.explore.external.run_result import RunResult, until_whole
from ldfi.explore.external.session import Elsewhere
from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.operation import operation
from ldfi.lineage.readers.otlp_json import read_fields
from ldfi.lineage.span import Span, Trace

TRACE, ROOT, SENT = "a" * 32, "b" * 16, "c" * 16
WAITING = Waiting.of(0.05, 0.3)
NOW = time.time_ns()


def body(service: str = "page", trace: str = TRACE) -> bytes:
    span = {
        "traceId": trace,
        "spanId": "d" * 16,
        "parentSpanId": SENT,
        "name": "GET /",
        "kind": 2,
        "startTimeUnixNano": str(NOW),
        "endTimeUnixNano": str(NOW + 1000),
    }
    named = [{"key": "service.name", "value": {"stringValue": service}}]
    document = {
        "resourceSpans": [{"resource": {"attributes": named}, "scopeSpans": [{"spans": [span]}]}]
    }
    return json.dumps(document).encode()


def post(receiver: Receiver, sent: bytes, path: str = "/v1/traces", **headers: str) -> int:
    return post_at(receiver.address, sent, path, **headers)


def post_at(address: str, sent: bytes, path: str = "/v1/traces", **headers: str) -> int:
    request = urllib.request.Request(
        f"http://{address}{path}",
        sent,
        {"content-type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()},
    )
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_it_takes_spans_plain_and_packed_and_says_what_it_cannot_read() -> None:
    taken: list[Span] = []
    receiver = Receiver("127.0.0.1:0", "", taken.extend)
    try:
        assert post(receiver, body()) == 200
        assert post(receiver, gzip.compress(body()), content_encoding="gzip") == 200
        assert post(receiver, b"{", content_encoding="gzip") == 400
        assert post(receiver, b"nonsense") == 400
        assert post(receiver, b"", path="/v1/metrics") == 200  # let go, without an error
    finally:
        receiver.close()

    assert [span.operation.service for span in taken] == ["page", "page"]
    assert receiver.counts["unreadable"] == 2


def test_exports_come_in_chunks_as_nodes_exporter_sends_them_and_the_connection_goes_on() -> None:
    taken: list[Span] = []
    receiver = Receiver("127.0.0.1:0", "", taken.extend)
    connection = http.client.HTTPConnection(receiver.address, timeout=5)
    try:
        for _ in range(2):
            chunks = iter([body()[:40], body()[40:]])  # an iterable is sent in chunks
            connection.request("POST", "/v1/traces", chunks, {"content-type": "application/json"})
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"{}")
    finally:
        connection.close()
        receiver.close()

    assert [span.operation.service for span in taken] == ["page", "page"]


@pytest.mark.parametrize("length", ["-1", "9" * 18, "1_0"])
def test_an_export_of_no_length_is_unreadable_and_its_connection_ends(length: str) -> None:
    taken: list[Span] = []
    receiver = Receiver("127.0.0.1:0", "", taken.extend)
    connection = http.client.HTTPConnection(receiver.address, timeout=5)
    try:
        connection.putrequest("POST", "/v1/traces")
        connection.putheader("Content-Type", "application/x-protobuf")
        connection.putheader("Content-Length", length)
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("connection")) == (400, "close")
    finally:
        connection.close()
        receiver.close()

    assert (taken, receiver.counts["unreadable"]) == ([], 1)


def test_beyond_loopback_a_token_is_asked_for() -> None:
    taken: list[Span] = []
    receiver = Receiver("0.0.0.0:0", "secret", taken.extend)
    try:
        assert receiver.receive("application/json", "", "Bearer other", body()) == 401
        assert receiver.receive("application/json", "", "Bearer secret", body()) == 200
    finally:
        receiver.close()

    assert (len(taken), receiver.counts["refused"]) == (1, 1)


def test_addresses() -> None:
    assert split(":9090") == ("127.0.0.1", 9090)
    assert split("[::1]:1") == ("::1", 1)
    assert is_loopback("127.0.0.1")
    assert is_loopback("localhost")
    assert not is_loopback("10.0.0.7")
    assert not is_loopback("collector")
    for wrong in ("", "9090", "host:port", "host:70000"):
        with pytest.raises(InvalidAddress, match="give HOST:PORT"):
            split(wrong)


def served(by: str = "page", parent: str = SENT) -> Span:
    pairs = [{"key": "http.request.method", "value": {"stringValue": "GET"}}]
    what = operation(by, "GET /", "server", 0, False, read_fields("server", pairs))
    return Span(TRACE, "d" * 16, parent, NOW, NOW + 500, what)


def called() -> Span:
    point = [{"key": "fit.point", "value": {"stringValue": "page>db:GET:cache"}}]
    what = operation("page", "GET", "client", 0, False, read_fields("client", point))
    return Span(TRACE, "e" * 16, "d" * 16, NOW, NOW + 400, what)


def own() -> tuple[list[Span], SentRequest]:
    sent = SentRequest(SENT, "GET", "http://127.0.0.1:8080/page/17", NOW, NOW + 900, 200)
    root = root_span(TRACE, ROOT, "app", NOW, NOW + 1000, failed=False)
    return [root, as_call(TRACE, ROOT, "app", sent)], sent


def test_a_run_is_waited_for_and_its_own_request_is_no_dependency() -> None:
    spans, sent = own()
    collector = Collector(WAITING)
    collector.begin(TRACE)
    collector.take([called()])  # before its parent, and before the run is over
    threading.Timer(0.15, collector.take, [[served()]]).start()

    trace = collector.whole(TRACE, spans)
    lineage = lineage_of(trace, {SENT})

    assert trace.missing == ""
    assert unanswered(trace, [sent]) == []
    assert lineage.called == {"page>db:GET:cache"}
    assert lineage.support == {"page>db:GET:cache"}


def test_what_nobody_has_told_of_the_run_is_a_stranger() -> None:
    spans, sent = own()
    collector = Collector(WAITING)
    collector.begin(TRACE)
    collector.take([served()._replace(trace_id="f" * 32)])

    trace = collector.whole(TRACE, spans)

    assert unanswered(trace, [sent]) == [sent]
    assert collector.strangers == {"page": 1}


def test_runs_that_go_on_at_a_time_are_each_waited_for() -> None:
    """What one run shows so far is not taken for all of it because another ends."""
    another = "f" * 32
    collector = Collector(WAITING)
    for trace_id in (TRACE, another):
        collector.begin(trace_id)
    collector.take([served()._replace(trace_id=another)])
    time.sleep(WAITING.patience + WAITING.quiet)

    spans, _ = own()
    collector.take([served(), called()])
    first = collector.whole(TRACE, spans)
    collector.take([called()._replace(trace_id=another)])
    second = collector.whole(another, [each._replace(trace_id=another) for each in spans])

    assert collector.late == 0
    assert [len(each.spans) for each in (first, second)] == [4, 4]


def test_whoever_comes_upon_the_trace_of_another_leaves_it_to_whoever_waits() -> None:
    collector, found = Collector(WAITING), dict[str, Trace]()
    traces = [f"{n:032x}" for n in range(1, 7)]

    def wait_for(trace_id: str) -> None:
        spans = [each._replace(trace_id=trace_id) for each in (*own()[0], served())]
        found[trace_id] = collector.whole(trace_id, spans)

    for trace_id in traces:
        collector.begin(trace_id)
    threads = [threading.Thread(target=wait_for, args=[each], daemon=True) for each in traces]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert {each: trace.trace_id for each, trace in found.items()} == {t: t for t in traces}


def test_what_comes_when_its_run_was_judged_is_counted() -> None:
    spans, _ = own()
    collector = Collector(WAITING)
    collector.begin(TRACE)
    collector.take([served()])
    collector.whole(TRACE, spans)

    collector.take([called()])
    collector.begin("f" * 32)

    assert collector.late == 1


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PATIENCE", 1)


@pytest.mark.usefixtures("impatient")
def test_exporters_that_are_away_are_waited_for_and_what_comes_late_of_them_is_let_go() -> None:
    told: list[str] = []

    def back(said: str) -> None:
        told.append(said)
        assert post(elsewhere.receiver, body("another", "e" * 32)) == 200

    elsewhere = Elsewhere("127.0.0.1:0", 0.05, back_off=60, tell=back)
    traces = iter("12345")

    def make() -> tuple[RunResult, RunResult]:
        trace = next(traces) * 32
        elsewhere.begin(trace)
        if told:
            assert post(elsewhere.receiver, body(trace="1" * 32)) == 200  # when it is given up
            assert post(elsewhere.receiver, body(trace=trace)) == 200
        result = shown(elsewhere, trace)
        return result, result

    try:
        result = until_whole(make)
        late = elsewhere.collector.late
    finally:
        elsewhere.close()

    (said,) = told
    assert re.search(r"the test is run again for \d\d s at the most$", said)
    assert (result.problem, next(traces), late) == ("", "3", 0)
    assert elsewhere.waited > 0


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "why", ["faults", "failed", "unanswered", "refused", "of another trace", "too long"]
)
def test_nothing_is_waited_for_where_no_exporter_can_be_away(why: str) -> None:
    back_off = 0.0 if why == "too long" else 60.0
    address = "0.0.0.0:0" if why == "refused" else "127.0.0.1:0"
    elsewhere = Elsewhere(address, 0.05, back_off=back_off, tell=pytest.fail)
    try:
        if why in {"refused", "of another trace"}:
            port = elsewhere.receiver.address.rpartition(":")[2]
            elsewhere.begin(TRACE)
            post_at(f"127.0.0.1:{port}", body(trace="f" * 32))
        faults = [Fault.parse("error@page>http:GET:store/")] if why == "faults" else []
        status = 0 if why == "unanswered" else 200
        result = shown(elsewhere, TRACE, faults, status=status, failed=why == "failed")
    finally:
        elsewhere.close()

    assert result.problem
    assert not result.away


def shown(
    elsewhere: Elsewhere,
    trace: str,
    faults: Sequence[Fault] = (),
    *,
    status: int = 200,
    failed: bool = False,
) -> RunResult:
    """What is seen of a run that has sent one request."""
    elsewhere.begin(trace)
    sent = SentRequest(SENT, "GET", "http://127.0.0.1:8080/page/17", NOW, NOW + 1000, status)
    own = [
        root_span(trace, ROOT, "app", NOW, NOW + 2000, failed=failed),
        as_call(trace, ROOT, "app", sent),
    ]
    return elsewhere.shown(trace, own, [sent], faults)


def test_who_keeps_a_connection_is_hung_up_on_in_the_end() -> None:
    receiver = Receiver("127.0.0.1:0", "", lambda _: None)
    connection = http.client.HTTPConnection(receiver.address, timeout=10)
    connection.request("POST", "/v1/traces", body(), {"content-type": "application/json"})
    connection.getresponse().read()

    receiver.close()

    with closing(connection):
        assert connection.sock.recv(1) == b""
