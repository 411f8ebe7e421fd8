from __future__ import annotations

import pytest
from hypothesis import given

from ldfi.fit.protocol.kinds import FAMILIES, family
from ldfi.fit.protocol.native_kinds import check_native, families, native
from ldfi.fit.protocol.points import Point
from tests.fit.kinds import ANY_KIND, LISTED

HTTP = "api>http:GET:ratings/titles/*"
RPC = "api>rpc:Get:/shop.Prices"
REDIS = "api>db:SET:sessions"
SELECT = "api>db:SELECT:recordsdb/marks"
UPDATE = "api>db:UPDATE:recordsdb/marks"
CONNECT = "api>db:connect:recordsdb"
MESSAGE = "api>message:send:kafka/plays"
CACHE = "api>cache:get:home"
FUNCTION = "home>function:rank"

EVERYWHERE = {"error", "delay"}


def offered(point: str) -> set[str]:
    kinds = (*LISTED, "status:404", "status:503", "exception:KeyError")
    return {kind for kind in kinds if native(kind, point)} - EVERYWHERE


@pytest.mark.parametrize(
    "point", [HTTP, RPC, REDIS, SELECT, UPDATE, CONNECT, MESSAGE, CACHE, FUNCTION, "no name"]
)
def test_every_point_can_fail_and_be_slow(point: str) -> None:
    assert all(native(kind, point) for kind in EVERYWHERE)


def test_what_each_protocol_knows() -> None:
    bodies = {"empty", "truncated", "corrupt"}
    statuses = {"status:404", "status:503"}
    assert offered(HTTP) == {"refused", "unresolved", "reset", "timeout", *bodies, *statuses}
    codes = {kind for kind in LISTED if family(kind) == "grpc"}
    assert offered(RPC) == {"refused", "unresolved", "timeout", *codes}
    gone = {"refused", "unresolved", "reset", "timeout", "redis:loading", "redis:lost"}
    made_by_hand = {"exception:KeyError"}
    assert offered(REDIS) == {*gone, "redis:readonly", *made_by_hand}
    told = {"reset", "timeout", "sql:deadlock", "sql:serialization", "sql:lost"}
    assert offered(SELECT) == {*told, *made_by_hand}
    assert offered(UPDATE) == {*told, "sql:readonly", *made_by_hand}
    assert offered(CONNECT) == {"refused", "unresolved", *made_by_hand}
    assert offered(MESSAGE) == {"timeout", *made_by_hand}
    assert offered(CACHE) == offered(FUNCTION) == made_by_hand


def test_what_only_reads_is_answered_by_a_server_that_is_read_only() -> None:
    assert not native("redis:readonly", "api>db:GET:sessions")
    assert native("redis:readonly", REDIS)


def test_an_answer_without_a_body_has_nothing_wrong_with_it() -> None:
    head = HTTP.replace("GET", "HEAD")
    assert not any(native(kind, head) for kind in ("empty", "truncated", "corrupt"))
    assert native("status:404", head)


@pytest.mark.parametrize(
    ("peer", "named"),
    [
        *(("ratings", True), ("localhost:8080", True), ("ratings.example", True)),
        *(("127.0.0.1:8080", False), ("10.0.0.1", False), ("::1:8080", False), ("::1", False)),
    ],
)
def test_a_name_that_does_not_resolve_is_no_address(peer: str, named: bool) -> None:
    assert native("unresolved", f"api>http:GET:{peer}/titles/*") is named
    assert native("unresolved", f"api>db:SET:{peer}") is named
    assert native("unresolved", f"api>rpc:List:{peer}/Athena") is named


@given(ANY_KIND)
def test_a_kind_is_refused_where_it_cannot_happen_and_the_point_is_told_of(kind: str) -> None:
    for point in (HTTP, RPC, UPDATE, FUNCTION):
        assert families(Point.parse(point)) <= set(FAMILIES)
        if native(kind, point):
            check_native(kind, point)
            continue
        with pytest.raises(ValueError, match="cannot happen at") as caught:
            check_native(kind, point)
        assert point in str(caught.value)
