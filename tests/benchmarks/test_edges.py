"""What the benchmark of many edges is made of: HTTP by hand, edges that keep to the protocol, and
how arrivals are counted."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import edges_simulated
from benchmarks.edges import alone, together
from benchmarks.edges_fleet import Arrival
from benchmarks.edges_http import Address, Chunks
from benchmarks.edges_simulated import Record, SimulatedEdge
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.fit.protocol.allocation import mark_of
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.predicate import Predicate
from ldfi.fit.protocol.rules import Rule
from tests.kit.service import GIVEN, client_of, service

PATIENCE = 60.0
FAULTS = (Fault("api>http:GET:b/c", "refused"),)


def rule(members: int) -> Rule:
    """A rule that claims half of the devices, half of these in either arm."""
    return Rule("e", "salt", Predicate.of([]), 0.25, 0.25, FAULTS, members=members)


def arrivals(of: Rule, came: str) -> list[Arrival]:
    """Devices in treatment (t), in control (c), each another one; capitals: the edge enrols it."""
    names = (f"device-{number}" for number in range(10_000))
    found: list[Arrival] = []
    for at, letter in enumerate(came):
        arm = {"t": "treatment", "c": "control"}[letter.lower()]
        device = next(name for name in names if of.arm_of(name) == arm)
        found.append((float(at), device, arm if letter.isupper() else ""))
    return found


@given(st.lists(st.binary(min_size=1, max_size=30), max_size=6), st.data())
def test_a_body_in_chunks_is_the_same_however_it_comes_in_pieces(
    chunks: list[bytes], data: st.DataObject
) -> None:
    written = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n"
    cuts = data.draw(st.lists(st.integers(0, len(written)), max_size=8).map(sorted))
    pieces = [written[a:b] for a, b in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    reader = Chunks()
    assert b"".join(reader.read(piece) for piece in pieces) == b"".join(chunks)
    assert reader.over


def test_a_single_edge_needs_arrivals_until_its_allowance_is_used_up() -> None:
    assert alone(rule(2), arrivals(rule(2), "tcctcc")) == 4
    assert alone(rule(3), arrivals(rule(3), "tcctcc")) == 6  # never: all that there were


def test_a_device_that_comes_again_passes_and_spends_nothing() -> None:
    (first, second) = arrivals(rule(2), "tt")
    assert alone(rule(2), [first, first, second, first]) == 3


def test_many_edges_need_arrivals_until_as_many_are_enrolled() -> None:
    assert together(arrivals(rule(2), "tCTctT"), 2) == (6, 2)
    assert together(arrivals(rule(2), "TTct"), 2) == (2, 2)
    assert together(arrivals(rule(2), "Tct"), 2) == (3, 1)


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FastAPI]:
    """The whole service in one process, over real sockets, in a thread of its own."""
    monkeypatch.setattr(edges_simulated, "ASK_SECONDS", 5.0)  # nobody is late on a busy machine
    app = service(f"sqlite:///{tmp_path / 'ldfi.sqlite3'}", halt_at=("127.0.0.1", 0))
    with client_of(app) as client:
        app.state.at = client.base_url
        yield app


async def at_the_board(app: FastAPI, work: Callable[[RulesBoard], Any]) -> Any:
    """Have something done at the board of rules, in the loop of the service."""

    async def do() -> Any:
        return work(app.state.engine.board)

    loop = app.state.halt_door._engines_loop
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(do(), loop))


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.02)


def test_simulated_edges_keep_to_the_protocol(app: FastAPI) -> None:
    asyncio.run(lived(app, rule(7), many=12))


async def lived(app: FastAPI, shared: Rule, many: int) -> None:
    to, record = Address(app.state.at.host, app.state.at.port, GIVEN["edge"]), Record()
    edges = [SimulatedEdge(to, record) for _ in range(many)]
    for edge in edges:
        await edge.open()
    await eventually(lambda: all(edge.knows for edge in edges))

    # What is armed is known at all of them
    def arm(board: RulesBoard) -> None:
        now = time.time()
        board.renew(now + 60)
        board.put(shared, 7, now)

    await at_the_board(app, arm)
    await eventually(lambda: len(record.known.get("e", [])) == many)
    # And devices are enrolled, in either arm, until the last member is
    became = []
    for number in range(80):
        came = edges[number % many].arrive(mark_of(f"device-{number}"))
        became.append(
            (shared.arm_of(f"device-{number}"), came if isinstance(came, str) else await came)
        )
    last = max(at for at, (_, what) in enumerate(became) if what == "treatment")
    assert sum(what == "treatment" for _, what in became) == 7
    assert all(what == (arm or "") for arm, what in became[: last + 1])
    assert all(what == ("refused" if arm else "") for arm, what in became[last + 1 :])
    # The service is told who they are
    control = sum(what == "control" for _, what in became)
    told = functools.partial(at_the_board, app, lambda b: (b["e"].used, b["e"].enrolled))
    async with asyncio.timeout(PATIENCE):
        while await told() != (7, control):
            await asyncio.sleep(0.05)
    # And when it is taken down no edge keeps anything of it
    await at_the_board(app, lambda board: board.take_down("e"))
    await eventually(lambda: len(record.gone.get("e", [])) == many)
    await eventually(lambda: not any(edge.polls for edge in edges))
    spent = await at_the_board(app, lambda board: board["e"].spent)
    assert spent == 7
    assert not record.refused
    assert 7 + control < len(record.asks) <= sum(what != "" for _, what in became)
    for edge in edges:
        edge.close()
    await asyncio.sleep(0)  # what is closed is gone in the loop's next turn
