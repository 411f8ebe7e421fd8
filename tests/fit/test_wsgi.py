from __future__ import annotations

import json
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

import httpx
import pytest
from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware

from ldfi import fit
from ldfi.fit import baggage
from ldfi.fit.protocol.allowance import Enrolled
from ldfi.fit.protocol.context import decode
from ldfi.fit.protocol.predicate import Condition, Predicate
from tests.fit.applications import KEYS, Recorded
from tests.fit.edges import Held, a_rule, wsgi_served


def echo(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answers with the baggage header it received."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ.get("HTTP_BAGGAGE", "").encode("latin-1")]


def asked(poll: Held, path: str = "/boot", **headers: str) -> str:
    headers = {"x-device-id": "d1", **headers}
    with wsgi_served(fit.WSGIEdgeMiddleware(echo, poll)) as url:
        return httpx.get(f"{url}{path}", headers=headers, trust_env=False).text


@pytest.mark.usefixtures("installed")
class TestEdge:
    def test_no_connection_takes_out_what_the_edge_puts_in(self) -> None:
        environ = {"REQUEST_METHOD": "GET", "REQUEST_URI": "/boot", "HTTP_X_DEVICE_ID": "d1"}
        environ["HTTP_CONNECTION"] = "close, Baggage,x-own"
        fit.WSGIEdgeMiddleware(echo, Held(a_rule()))(environ, lambda *_: None)

        assert baggage.values(environ["HTTP_BAGGAGE"])
        assert environ["HTTP_CONNECTION"] == "close,x-own"

    def test_a_device_in_treatment_gets_a_context(self) -> None:
        value = baggage.find(asked(Held(a_rule())))

        assert value is not None
        assert decode(KEYS, value, time.time()).arm == "treatment"

    @pytest.mark.parametrize("foreign", ["fit=x", "a=b, fit = 1.2;p=q", "%66it=x", "+fit=x"])
    def test_a_foreign_context_is_stripped_and_nothing_else(self, foreign: str) -> None:
        seen = asked(Held(), baggage=f"user=u1,{foreign}")

        assert baggage.values(seen) == []
        assert "user=u1" in seen

    def test_several_headers_and_bytes_that_are_no_text(self) -> None:
        with wsgi_served(fit.WSGIEdgeMiddleware(echo, Held())) as url:
            connection = HTTPConnection(url.removeprefix("http://"), timeout=5)
            connection.putrequest("GET", "/boot")
            for value in (b"a=\xff", b"fit=x", b"c=d,%66it=y"):
                connection.putheader("Baggage", value)
            connection.endheaders()
            seen = connection.getresponse().read()
            connection.close()

        assert seen == b"a=\xff,c=d"

    def test_beyond_the_allowance_only_those_already_treated_are_stamped(self) -> None:
        # Given an allowance of five, and a threaded server
        poll = Held(a_rule(members=5))
        app = fit.WSGIEdgeMiddleware(echo, poll)
        with wsgi_served(app) as url, httpx.Client(trust_env=False) as client:
            # When forty devices come at once, twice
            def ask(device: int) -> bool:
                answer = client.get(f"{url}/boot", headers={"x-device-id": f"d{device}"})
                return bool(answer.text)

            with ThreadPoolExecutor(8) as pool:
                first, second = (list(pool.map(ask, range(40))) for _ in range(2))
        # Then five of them are treated, and the same five stay so
        assert sum(first) == 5
        assert second == first
        assert poll.allowances.report() == {"e1": Enrolled(5, wants=True)}

    def test_an_exception_of_ours_never_reaches_the_request_and_lets_nothing_in(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> str:
            raise RuntimeError("broken")

        monkeypatch.setattr("ldfi.fit.edge.Edge.baggage_onward", broken)
        assert asked(Held(a_rule()), baggage="user=u1,fit=x") == ""

    def test_a_stamped_request_is_sampled_and_says_what_it_is_in(self, recorded: Recorded) -> None:
        traced = OpenTelemetryMiddleware(echo, tracer_provider=recorded.provider)
        with wsgi_served(fit.WSGIEdgeMiddleware(traced, Held(a_rule()))) as url:
            for path in ("/boot", "/search"):
                headers = {"x-device-id": "d1", "traceparent": f"00-{'a' * 32}-{'b' * 16}-00"}
                httpx.get(f"{url}{path}", headers=headers, trust_env=False)

        (attributes,) = recorded.attributes("SERVER")
        assert (attributes["fit.experiment"], attributes["fit.arm"]) == ("e1", "treatment")


def test_without_a_key_the_edge_still_strips() -> None:
    assert asked(Held(a_rule()), baggage="a=b,fit=1.2.3") == "a=b"


@pytest.mark.usefixtures("installed")
def test_a_request_is_stamped_by_what_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIT_READ_BODY", "1")
    called = Predicate.of([Condition("jsonrpc.method", "films.list")])
    poll, seen = Held(a_rule(predicate=called)), list[bytes]()

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        seen.append(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        return echo(environ, start_response)

    with wsgi_served(fit.WSGIEdgeMiddleware(app, poll)) as url:
        for method in ("films.list", "films.rate"):
            body = {"jsonrpc": "2.0", "id": 1, "method": method}
            headers = {"x-device-id": "d1"}
            answer = httpx.post(f"{url}/rpc", json=body, headers=headers, trust_env=False).text
            assert bool(baggage.find(answer)) is (method == "films.list")
            assert json.loads(seen.pop()) == body
