"""What several spans tell of one call, and whose side of it they are."""

from __future__ import annotations

from typing import Any

import pytest

from ldfi.lineage.evidence import callees, support
from ldfi.lineage.readers.formats import read_json
from ldfi.lineage.span import Trace
from ldfi.lineage.tree import Tree, build
from tests.lineage.formats import Made, otlp_json

HTTP = {"http.request.method": "POST", "http.response.status_code": 200}
MODEL = {**HTTP, "url.full": "http://models.test/v1/chat"}
TOKEN = {**HTTP, "url.full": "http://tokens.test/new"}
GEN_AI = {"gen_ai.operation.name": "chat", "server.address": "models.test"}
ELASTIC = {
    "db.system.name": "elasticsearch",
    "db.namespace": "titles",
    "db.operation.name": "search",
}
GRPC = {"rpc.system": "grpc", "rpc.service": "shop.Prices", "rpc.method": "Get"}


def tree(*spans: Made) -> Tree:
    root = Made(1, 0, "web", "server", "POST /prompt", (0, 100), HTTP)
    built = build(Trace.of(root.trace, read_json(otlp_json([root, *spans])).spans))
    assert built is not None
    return built


def called(*said: dict[str, Any], **more: Any) -> Tree:
    """A call told by layers, one within the other; more of what is said of the innermost."""
    spans = [
        Made(
            n,
            n - 1,
            "web",
            "client",
            "ask",
            (n, 90 - n),
            each,
            **(more if each is said[-1] else {}),
        )
        for n, each in enumerate(said, start=2)
    ]
    return tree(*spans)


@pytest.mark.parametrize(
    ("layers", "points"),
    [
        ((GEN_AI, MODEL), {"web>http:POST:models.test/v1/chat"}),
        (({"gen_ai.system": "openai"}, MODEL), {"web>http:POST:models.test/v1/chat"}),
        (({"az.namespace": "Microsoft.Storage"}, MODEL), {"web>http:POST:models.test/v1/chat"}),
        ((ELASTIC, MODEL), {"web>http:POST:models.test/v1/chat"}),
        (
            ({"db.system": "dynamodb", "rpc.system": "aws-api"}, MODEL),
            {"web>http:POST:models.test/v1/chat"},
        ),
        (
            ({"rpc.system": "aws-api", "rpc.service": "S3", "rpc.method": "Get"}, MODEL),
            {"web>http:POST:models.test/v1/chat"},
        ),
        (
            ({"messaging.system": "aws_sqs", "messaging.destination.name": "jobs"}, MODEL),
            {"web>http:POST:models.test/v1/chat"},
        ),
        (({"faas.invoked_name": "resize"}, MODEL), {"web>http:POST:models.test/v1/chat"}),
        ((GEN_AI, MODEL, MODEL), {"web>http:POST:models.test/v1/chat"}),
        ((MODEL, MODEL), {"web>http:POST:models.test/v1/chat"}),
        ((GRPC, GRPC), {"web>rpc:Get:/shop.Prices"}),
        (
            (GRPC, {**HTTP, "url.full": "http://p/shop.Prices/Get"}),
            {"web>http:POST:p/shop.Prices/Get"},
        ),
        # Calls of their own: a token that is fetched on the way, what fit has named, a query
        ((GEN_AI, TOKEN), {"web>call:ask:models.test", "web>http:POST:tokens.test/new"}),
        ((MODEL, TOKEN), {"web>http:POST:models.test/v1/chat", "web>http:POST:tokens.test/new"}),
        ((GRPC, TOKEN), {"web>rpc:Get:/shop.Prices", "web>http:POST:tokens.test/new"}),
        (
            ({"fit.point": "web>rpc:Get:/S3"}, MODEL),
            {"web>rpc:Get:/S3", "web>http:POST:models.test/v1/chat"},
        ),
        (
            (MODEL, {"db.system": "redis", "db.statement": "GET a"}),
            {"web>http:POST:models.test/v1/chat", "web>db:GET:redis"},
        ),
    ],
)
def test_layers_of_one_call_are_one_point(layers: Any, points: set[str]) -> None:
    assert support(called(*layers)) == points


@pytest.mark.parametrize("name", ["dns.lookup", "tcp.connect", "http.dns", "RESOLVE"])
def test_a_part_of_a_call_is_no_call(name: str) -> None:
    call = Made(2, 1, "web", "client", "ask", (1, 90), MODEL)
    address = {"network.peer.address": "10.0.0.7", "network.peer.port": 80}
    outer = Made(3, 2, "web", "client", name, (2, 9), {**address, "error.type": "EAI_AGAIN"})
    built = tree(call, outer, Made(4, 3, "web", "client", name, (3, 8), address))
    assert support(built) == {"web>http:POST:models.test/v1/chat"}
    # by itself it is all that is known of a call
    assert len(support(tree(Made(2, 1, "web", "client", name, (2, 9), address)))) == 1


@pytest.mark.parametrize("names", [("localhost", "127.0.0.1"), ("127.0.0.1", "localhost")])
def test_loopback_has_several_names(names: tuple[str, str]) -> None:
    outer, inner = ({**HTTP, "url.full": f"http://{name}:8080/v1"} for name in names)
    assert support(called(outer, inner)) == {f"web>http:POST:{names[1]}:8080/v1"}


def test_a_layer_that_failed_leaves_a_doubt_about_the_call_below_it() -> None:
    (call,) = called({**GEN_AI, "error.type": "RateLimited"}, MODEL).calls
    assert (call.point, call.failed, call.doubtful) == (
        "web>http:POST:models.test/v1/chat",
        False,
        True,
    )
    (call,) = called(
        {**GEN_AI, "error.type": "500"}, {**MODEL, "http.response.status_code": 500}
    ).calls
    assert (call.failed, call.doubtful) == (True, False)


def test_an_answered_call_is_no_layer() -> None:
    answer = Made(9, 2, "models", "server", "POST /v1/chat", (3, 80), HTTP)
    built = tree(
        Made(2, 1, "web", "client", "ask", (1, 90), MODEL),
        Made(3, 2, "web", "client", "token", (2, 5), MODEL),
        answer,
    )
    assert [call.callee for call in built.calls] == ["models"]


@pytest.mark.parametrize(
    ("kind", "name", "callee", "within"),
    [
        ("server", "Charge", "payment", []),
        ("client", "Charge", "payment", []),  # its own side under the caller's kind
        ("internal", "charge card", "payment", []),  # a tracer's default
        ("client", "bank", "payment", ["payment>call:bank"]),  # a call that it makes
        ("consumer", "Charge", "payment", None),
    ],
)
def test_what_lies_below_a_call_in_another_service_is_its_callee(
    kind: str, name: str, callee: str, within: list[str] | None
) -> None:
    built = tree(
        Made(2, 1, "web", "client", "Charge", (1, 50)),
        Made(3, 2, "payment", kind, name, (2, 40), status="ERROR"),
    )
    (call,) = built.calls
    assert (call.point, call.callee) == ("web>call:Charge", callee)
    assert within is None or [inner.point for inner in call.calls] == within
    assert set(callees(built).values()) == {"payment"}


@pytest.mark.parametrize("failed", [(), (0,), (0, 1), (0, 1, 2)])
def test_answers_to_one_call_are_attempts_of_it(failed: tuple[int, ...]) -> None:
    attempts = [
        Made(
            3 + n,
            2,
            "pay",
            "server",
            "POST /pay",
            (2 + n, 3 + n),
            status="ERROR" if n in failed else "OK",
        )
        for n in range(3)
    ]
    (call,) = tree(Made(2, 1, "web", "client", "pay", (1, 50)), *attempts).calls
    assert call.attempts == tuple(n in failed for n in range(3))
    assert call.failed == (len(failed) == 3)
