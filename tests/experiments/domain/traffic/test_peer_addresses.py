"""Calls that never got through are of the point that the others went to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.traffic.peer_addresses import FEW, MOST, Peers
from ldfi.fit.protocol.points import Point
from ldfi.testing.spans import lineage, span

CARTS, REFUSED = "front>rpc:Get:carts:7070/shop.Cart", "front>rpc:Get:/shop.Cart"


def test_a_call_that_was_refused_fails_at_the_point_of_those_that_connected() -> None:
    peers = Peers()
    peers.learn([CARTS])
    run = peers.addressed(lineage(span("root", kind="server"), span(REFUSED, "root", failed=True)))
    assert run.failed == run.called == {CARTS}
    assert run.libraries.keys() == {CARTS}


@given(
    st.sets(st.sampled_from(["a:1", "b:1", "10.0.0.1:1"])),
    st.sampled_from(["rpc", "http", "db"]),
)
def test_it_is_told_only_where_there_is_no_doubt(addresses: set[str], kind: str) -> None:
    peers = Peers()
    named = {str(Point("front", kind, "Get", each, "/x")) for each in addresses}
    peers.learn(named)
    bare = str(Point("front", kind, "Get", "", "/x"))
    run = lineage(span("root", kind="server"), span(bare, "root", failed=True))
    told = peers.addressed(run)
    sure = len(addresses) == 1 and kind != "db"
    assert told.failed == (named if sure else {bare})
    assert (told is run) is not sure


def test_memory_is_bounded() -> None:
    peers = Peers()
    peers.learn(f"front>rpc:Get:host{i}:1/shop.S" for i in range(20))
    (known,) = peers._known.values()
    assert len(known) == FEW
    peers.learn(f"front>rpc:Get:h:1/s{i}.S" for i in range(MOST + 50))
    assert len(peers._known) == MOST
