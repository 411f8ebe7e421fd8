from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

from ldfi import fit
from ldfi.fit import baggage
from ldfi.fit.clock import steady
from ldfi.fit.protocol.allowance import Enrolled
from ldfi.fit.protocol.context import decode, encode
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.fit.protocol.rules import Lease
from ldfi.fit.protocol.scenario import scenario_of
from ldfi.testing.live_service import served
from tests.fit.applications import KEYS, Recorded, echo_app, traced
from tests.fit.edges import Held, a_rule


def asked(poll: Held, path: str = "/boot", **headers: str) -> str:
    """The baggage that reaches the application behind the edge."""
    named = {"x-device-id": "d1", **headers}.items()
    scope = http_scope(path=path) | {"headers": [(k.encode(), v.encode()) for k, v in named]}
    return b",".join(baggage_of(scope_behind(poll, scope))).decode()


def scope_behind(poll: Held, scope: dict[str, Any]) -> dict[str, Any]:
    """The scope that reaches the application behind the edge, over no socket."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.extend([scope, receive, send])

    receive: Any = object()
    send: Any = object()
    asyncio.run(fit.EdgeMiddleware(app, poll)(scope, receive, send))
    assert seen[1:] == [receive, send]
    found: dict[str, Any] = seen[0]
    return found


def http_scope(*headers: tuple[bytes, bytes], **more: Any) -> dict[str, Any]:
    named = [(b"x-device-id", b"d1"), *headers]
    return {"type": "http", "method": "GET", "path": "/boot", "headers": named, **more}


def baggage_of(scope: dict[str, Any]) -> list[bytes]:
    return [value for name, value in scope["headers"] if name.lower() == b"baggage"]


@pytest.mark.usefixtures("installed")
class TestEdge:
    @pytest.mark.parametrize(
        ("listed", "left"),
        [(b"Baggage", []), (b"close, BAGGAGE,x-own", [b"close,x-own"]), (b"x-own", [b"x-own"])],
    )
    def test_no_connection_takes_out_what_the_edge_puts_in(
        self, listed: bytes, left: list[bytes]
    ) -> None:
        onward = scope_behind(Held(a_rule()), http_scope((b"connection", listed)))

        assert len(baggage_of(onward)) == 1
        assert [value for name, value in onward["headers"] if name == b"connection"] == left

    def test_a_device_in_treatment_gets_a_context_that_ends_with_the_lease(self) -> None:
        value = baggage.find(asked(Held(a_rule())))

        assert value is not None
        context = decode(KEYS, value, time.time())
        assert (context.experiment, context.arm) == ("e1", "treatment")
        assert context.expires <= time.time() + 11

    @pytest.mark.parametrize(("seconds", "holds"), [(5.0, 40.0), (50.0, 50.0)])
    def test_a_context_holds_for_as_long_as_asked(self, seconds: float, holds: float) -> None:
        rule = replace(a_rule(), patience=40.0)
        value = baggage.find(asked(Held(rule, seconds=seconds)))
        assert value is not None
        left = decode(KEYS, value, time.time()).expires - time.time()
        assert holds - 1 < left <= holds + 1

    def test_a_jump_of_the_clock_prolongs_no_lease(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # Given a lease, and a wall clock that is then set back by an hour
        poll = Held(a_rule(), seconds=5.0)
        true_time = time.time
        monkeypatch.setattr(time, "time", lambda: true_time() - 3600)
        # When a request comes, its context ends with the lease by that clock, too
        (header,) = baggage_of(scope_behind(poll, http_scope()))
        value = baggage.find(header.decode())
        assert value is not None
        assert decode(KEYS, value, time.time()).expires <= time.time() + 6.2
        # And when the lease has run out, the edge is quiet
        poll.hold(Lease((a_rule(),), steady() - 0.001))
        assert baggage_of(scope_behind(poll, http_scope())) == []

    @pytest.mark.parametrize(
        "foreign",
        [
            *("fit=1.k.e.t.1.e.x", "fit=x,fit=y", "a=b, fit = 1.2;p=q", "%66it=x", "%66%69%74=x"),
            *("+fit=x", "fit%20=x", "FIT=x", "\tfit\t=x", "fit"),
        ],
    )
    def test_a_foreign_context_is_stripped_and_nothing_else(self, foreign: str) -> None:
        scope = scope_behind(Held(), http_scope((b"baggage", f"user=u1,{foreign}".encode())))

        (seen,) = baggage_of(scope)
        assert baggage.values(seen.decode()) == []
        assert b"user=u1" in seen
        assert b"x" not in seen.replace(b"user", b"")

    def test_a_foreign_context_in_any_of_several_headers_is_stripped(self) -> None:
        several = [(b"baggage", b"a=b"), (b"Baggage", b"fit=x"), (b"baggage", b"c=d,fit=y")]

        assert baggage_of(scope_behind(Held(), http_scope(*several))) == [b"a=b,c=d"]

    def test_bytes_that_are_no_text_pass_as_they_are(self) -> None:
        strange = b"a=\xff\xfe,\x00=\xe2\x82,=,,%zz=1"
        scope = http_scope((b"baggage", strange + b",fit=x"))

        assert baggage_of(scope_behind(Held(), scope)) == [strange]

    def test_a_request_with_nothing_of_ours_passes_as_the_same_object(self) -> None:
        scope = http_scope((b"baggage", b"user=u1,profit=7"), path="/search")

        assert scope_behind(Held(a_rule()), scope) is scope

    def test_a_scenario_of_this_device_passes_and_takes_precedence(self) -> None:
        value = encode(KEYS, scenario_of("d1"), "treatment", int(time.time()) + 5, [])

        assert baggage.find(asked(Held(a_rule()), baggage=f"fit={value}")) == value

    @pytest.mark.parametrize("whose", ["e1", scenario_of("d2")])
    def test_no_other_context_comes_in_however_well_it_is_signed(self, whose: str) -> None:
        # Given a context that an edge has stamped, or one for somebody else's device, caught
        value = encode(KEYS, whose, "treatment", int(time.time()) + 5, [])
        # Then whoever sends it in from outside gets nothing for it
        assert baggage.values(asked(Held(), baggage=f"fit={value}")) == []

    def test_of_several_contexts_only_the_one_that_verifies_goes_on(self) -> None:
        value = encode(KEYS, scenario_of("d1"), "treatment", int(time.time()) + 5, [])
        several = [(b"baggage", b"a=b,fit=x"), (b"baggage", f"fit={value};p=q,fit=y".encode())]

        (seen,) = baggage_of(scope_behind(Held(), http_scope(*several)))
        assert seen == f"fit={value},a=b".encode()

    def test_a_request_whose_baggage_would_be_dropped_whole_is_not_stamped(self) -> None:
        # Given as much baggage as OpenTelemetry reads
        poll, full = Held(a_rule()), b"a=" + b"x" * 8190
        # When a stamp would make it more, there is none, and the device is not counted
        assert baggage_of(scope_behind(poll, http_scope((b"baggage", full)))) == [full]
        assert poll.allowances.report() == {}

    def test_a_treated_device_is_counted_before_its_request_goes_on(self) -> None:
        poll = Held(a_rule())
        counted = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            counted.append(poll.allowances.report())

        asyncio.run(fit.EdgeMiddleware(app, poll)(http_scope(), None, None))  # type: ignore[arg-type]
        assert counted == [{"e1": Enrolled(1)}]

    def test_an_exception_of_ours_never_reaches_the_request_and_lets_nothing_in(self) -> None:
        class Broken(Held):
            def lease(self) -> Lease:
                raise RuntimeError("broken")

        assert asked(Broken(), baggage="user=u1,fit=x") == "user=u1"

    @pytest.mark.parametrize("kind", ["lifespan", "grpc", "anything"])
    def test_other_scopes_pass_untouched(self, kind: str) -> None:
        scope = {"type": kind, "headers": [(b"baggage", b"fit=x")]}

        assert scope_behind(Held(a_rule()), scope) is scope

    def test_a_websocket_handshake_is_stripped_and_never_stamped(self) -> None:
        scope = http_scope((b"baggage", b"user=u1,fit=x"), type="websocket")
        del scope["method"]

        assert baggage_of(scope_behind(Held(a_rule()), scope)) == [b"user=u1"]

    def test_the_body_of_a_stream_passes_untouched_both_ways(self) -> None:
        # Given a gRPC-like exchange: messages go back and forth while the request is open
        async def app(scope: Any, receive: Any, send: Any) -> None:
            while (message := await receive())["more_body"]:
                await send({"type": "http.response.body", "body": message["body"][::-1]})

        async def exchange() -> list[bytes]:
            bodies = iter([b"\x00\x00abc", b"\xff\xfe", b""])
            sent: list[bytes] = []

            async def receive() -> dict[str, Any]:
                body = next(bodies)
                return {"type": "http.request", "body": body, "more_body": bool(body)}

            async def send(message: Any) -> None:
                sent.append(message["body"])

            content = (b"content-type", b"application/grpc")
            await fit.EdgeMiddleware(app, Held(a_rule()))(http_scope(content), receive, send)
            return sent

        assert asyncio.run(exchange()) == [b"cba\x00\x00", b"\xfe\xff"]

    def test_a_stamped_request_is_sampled_and_says_what_it_is_in(self, recorded: Recorded) -> None:
        app = fit.EdgeMiddleware(traced(echo_app(), recorded), Held(a_rule()))
        with served(app) as url:
            httpx.get(f"{url}/boot", headers={"x-device-id": "d1"}, trust_env=False)
            httpx.get(f"{url}/search", headers={"x-device-id": "d1"}, trust_env=False)

        (attributes,) = recorded.attributes("SERVER")
        assert (attributes["fit.experiment"], attributes["fit.arm"]) == ("e1", "treatment")

    def test_also_where_the_client_had_decided_not_to_sample(self, recorded: Recorded) -> None:
        app = fit.EdgeMiddleware(traced(echo_app(), recorded), Held(a_rule()))
        unsampled = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-00", "x-device-id": "d1"}
        with served(app) as url:
            httpx.get(f"{url}/boot", headers=unsampled, trust_env=False)
            httpx.get(f"{url}/search", headers=unsampled, trust_env=False)

        (span,) = [span for span in recorded.spans() if span.kind.name == "SERVER"]
        assert span.context is not None
        assert f"{span.context.trace_id:x}" == "a" * 32
        assert span.context.trace_flags.sampled

    def test_with_two_leases_a_context_ends_with_its_own(self) -> None:
        poll = Held(a_rule())
        scope_behind(poll, http_scope())
        poll.hold(Lease((a_rule(),), steady() + 30))

        (header,) = baggage_of(scope_behind(poll, http_scope()))
        value = baggage.find(header.decode())
        assert value is not None
        assert decode(KEYS, value, time.time()).expires > time.time() + 28


def test_without_a_key_the_edge_still_strips() -> None:
    assert asked(Held(a_rule()), baggage="fit=1.2.3") == ""


HOME = Predicate.of([Condition("path", "/graphql"), Condition("graphql.operation", "Home")])
ASKED = {"operationName": "Home", "query": "query Home { me { id } }"}


def posted(poll: Held, body: dict[str, str] | str, content_type: str = "application/json") -> Any:
    """What the application behind the edge got: its baggage, and the body."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        whole, more = b"", True
        while more:
            message = await receive()
            whole, more = whole + message["body"], message.get("more_body", False)
        seen.extend([baggage_of(scope), whole])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    headers = {"x-device-id": "d1", "content-type": content_type}
    content = body if isinstance(body, str) else json.dumps(body)
    with served(fit.EdgeMiddleware(app, poll)) as url:
        httpx.post(f"{url}/graphql", content=content, headers=headers, trust_env=False)
    return seen


@pytest.mark.usefixtures("installed")
class TestBodies:
    def test_a_request_is_stamped_by_what_it_asks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FIT_READ_BODY", "1")
        stamped, body = posted(Held(a_rule(predicate=HOME)), ASKED)
        assert stamped
        assert json.loads(body) == ASKED
        other, body = posted(Held(a_rule(predicate=HOME)), {"operationName": "Search"})
        assert not other
        assert json.loads(body) == {"operationName": "Search"}

    @pytest.mark.parametrize(
        "body", ["{", "", "[1]", "x" * 70_000, json.dumps({"a": "b" * 60_000})]
    )
    def test_every_body_passes_as_sent(self, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FIT_READ_BODY", "1")
        stamped, seen = posted(Held(a_rule(predicate=HOME)), body)
        assert not stamped
        assert seen.decode() == body

    def test_without_leave_no_body_is_read(self) -> None:
        denied = Predicate.of([Condition("graphql.operation", "Search", negated=True)])
        for predicate in (HOME, denied):
            assert posted(Held(a_rule(predicate=predicate)), ASKED)[0] == []

    def test_a_header_that_a_rule_asks_for_is_read(self) -> None:
        gold = Predicate.of([Condition("header.x-plan", "gold")])
        assert asked(Held(a_rule(predicate=gold)), **{"x-plan": "gold"})
        assert not asked(Held(a_rule(predicate=gold)), **{"x-plan": "free"})
        trial = Predicate.of([Condition("baggage.plan", "trial")])
        assert baggage.find(asked(Held(a_rule(predicate=trial)), baggage="a=b,plan=trial;x=y"))
        old = Predicate.of([Condition("cookie.ab", "old")])
        assert asked(Held(a_rule(predicate=old)), cookie="session=1; ab=old")
