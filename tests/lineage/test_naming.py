"""Names of points read from spans, and whether a call failed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit.protocol.points import template_path
from ldfi.lineage.attributes import template_any_path, template_url
from ldfi.lineage.operation import Operation, operation
from ldfi.lineage.readers.otlp_json import read_fields


def client(status: int = 0, /, name: str = "call", kind: str = "client", **given: str) -> Operation:
    attributes = [
        {"key": key.replace("__", "."), "value": {"stringValue": value}}
        for key, value in given.items()
    ]
    return operation("api", name, kind, status, False, read_fields(kind, list(attributes)))


@pytest.mark.parametrize(
    ("attributes", "point"),
    [
        (
            "http__request__method=GET | url__full=http://ratings:80/titles/7?page=1",
            "api>http:GET:ratings/titles/*",
        ),
        (
            "http__method=GET | http__url=http://127.0.0.1:8081/u/a%40b.c/x",
            "api>http:GET:127.0.0.1:8081/u/*/x",
        ),
        (
            "http__method=POST | net__peer__name=ratings | net__peer__port=80"
            " | http__target=/a/deadbeef12345678?x=1",
            "api>http:POST:ratings/a/*",
        ),
        (
            "rpc__system=grpc | rpc__service=D.S | rpc__method=Find | server__address=driver",
            "api>rpc:Find:driver/D.S",
        ),
        (
            "rpc__system__name=grpc | rpc__method=D.S/Find | server__address=driver",
            "api>rpc:Find:driver/D.S",
        ),
        (
            "db__system=mysql | db__name=库存库 | db__statement=select * from 订单",
            "api>db:SELECT:库存库/订单",
        ),
        (
            "messaging__system=rabbitmq | messaging__destination__name=支付",
            "api>message:send:rabbitmq/支付",
        ),
        (
            "http__request__method=GET | url__full=http://库存服务/订单/%E8%AE%A2",
            "api>http:GET:库存服务/*/*",
        ),
        (
            "db__system=mysql | db__statement=select * from owners where id = 7",
            "api>db:SELECT:mysql/owners",
        ),
        (
            "db__system__name=postgresql | db__operation__name=INSERT | db__namespace=shop"
            " | db__collection__name=orders",
            "api>db:INSERT:shop/orders",
        ),
        (
            "messaging__system=kafka | messaging__destination__name=orders",
            "api>message:send:kafka/orders",
        ),
        (
            "db__system=redis | db__statement=SET a ? | db__name=0 | server__address=cache",
            "api>db:SET:cache",
        ),
        ("faas__invoked_name=resize", "api>faas:invoke:resize"),
        ("peer__service=somewhere", "api>call:call:somewhere"),
        ("fit__point=api>cache:get:home | db__system=redis", "api>cache:get:home"),
    ],
)
def test_points_are_named_from_old_and_new_conventions(attributes: str, point: str) -> None:
    pairs = (each.partition("=") for each in attributes.split(" | "))
    assert client(**{key: value for key, _, value in pairs}).point == point


@pytest.mark.parametrize("first", ["db__query__text", "db__query__summary"])
def test_a_statement_names_a_point_and_not_its_summary_whichever_is_written_first(
    first: str,
) -> None:
    said = {"db__query__summary": "INSERT marks", "db__query__text": "insert into marks values (?)"}
    ordered = {first: said.pop(first), **said}
    what = client(name="INSERT marks", db__system__name="h2", db__namespace="shop", **ordered)
    assert what.point == "api>db:INSERT:shop/marks"


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("pg.query:SELECT shop", "api>db:SELECT:shop/marks"),
        ("pg.connect", "api>db:connect:shop"),
        ("pg-pool.connect", None),
    ],
)
def test_what_node_calls_the_opening_of_a_connection(name: str, point: str | None) -> None:
    text = {"db__query__text": "select 1 from marks"} if "query" in name else {}
    pg = {"db__system__name": "postgresql", "db__namespace": "shop", "server__address": "10.0.0.7"}

    assert client(name=name, **pg, **text).point == point


def test_identifiers_in_span_names_never_reach_a_name() -> None:
    what = client(name="SELECT 1003b273-08ba-49cc-9af3-cfb9dbd88922.pets", db__system="hsqldb")
    assert what.point == "api>db:SELECT:hsqldb/*.pets"


def test_a_server_span_is_no_point_and_carries_the_features_of_its_request() -> None:
    what = client(
        kind="server",
        http__request__method="GET",
        url__path="/titles/7",
        url__query="page=3&q=a very long search that nobody else types",
        http__request__header__x_device_type="tv",
    )
    assert what.point is None
    assert what.features["path"] == "/titles/*"
    assert what.features["query.page"] == "*"
    assert what.features["query.q"] == "*"


def test_a_grpc_request_is_what_an_edge_sees_of_it() -> None:
    what = client(kind="server", rpc__system="grpc", rpc__method="D.S/Find")
    assert what.features == {"method": "POST", "path": "/D.S/Find"}


def test_a_graphql_request_is_labelled_by_its_operation() -> None:
    attributes = {"graphql__operation__name": "Home", "graphql__operation__type": "query"}
    what = client(kind="server", http__route="/graphql", http__method="POST", **attributes)
    assert what.route == "/graphql query Home"


def test_whose_address_a_client_has_makes_no_difference_to_what_it_asks() -> None:
    first = client(kind="server", http__method="GET", net__peer__name="10.0.0.7")
    assert client(kind="server", http__method="GET", net__peer__name="10.0.0.8") is first


@given(
    st.lists(
        st.sampled_from(["titles", "tt0111161", "7", "v1", "deadbeef01", "-12", "a.b", "x-123"])
        | st.uuids().map(str)
        | st.text("abf019-_.%@Z", min_size=1, max_size=12),
        max_size=5,
    )
)
def test_templating_in_one_stroke_says_what_fit_says(segments: list[str]) -> None:
    path = "/" + "/".join(segments)
    assert template_any_path(path) == template_path(path)
    assert template_url(f"http://h:80{path}#x") == f"http://h:80{template_path(path)}"


@pytest.mark.parametrize(
    ("status", "attributes", "failed"),
    [
        (2, {}, True),
        (1, {}, False),
        (0, {}, None),
        (0, {"http__response__status_code": "503"}, True),
        (0, {"http__status_code": "200"}, False),
        (2, {"http__response__status_code": "404"}, False),
        (2, {"http__response__status_code": "429"}, True),
        (1, {"http__response__status_code": "500"}, False),
        (0, {"rpc__grpc__status_code": "14"}, True),
        (2, {"rpc__grpc__status_code": "5"}, False),
        (0, {"rpc__response__status_code": "DEADLINE_EXCEEDED"}, True),
        (0, {"rpc__response__status_code": "OK"}, False),
        (0, {"fit__fired": "error", "http__status_code": "200"}, True),
        (0, {"fit__fired": "delay", "http__status_code": "200"}, False),
    ],
)
def test_failed_or_not(status: int, attributes: dict[str, str], failed: bool | None) -> None:
    assert client(status, **attributes).failed is failed


def test_an_exception_counts_only_where_nothing_else_speaks() -> None:
    assert operation("a", "b", "client", 0, True, ()).failed is True
    assert operation("a", "b", "client", 1, True, ()).failed is False
    assert operation("a", "b", "client", 0, True, (("status", "200"),)).failed is False


def test_equal_spans_share_one_operation() -> None:
    assert client(peer__service="x") is client(peer__service="x")
