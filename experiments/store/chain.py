"""The chain of all runs there ever were: records as the leaves of one Merkle tree, and its head.

A record is appended in the transaction that ends its experiment, so there is never one without the
other. Nothing here is changed or deleted, but for the head, which is signed anew each time, and
for records that :mod:`ldfi.experiments.store.checkpoints` drops: their hashes stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.experiments.store import checkpoints, run_counts
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import ExperimentRow, HeadRow, RunRow
from ldfi.proof import merkle
from ldfi.proof.canonical import read
from ldfi.proof.head import ClassVersion, Head, SigningKey
from ldfi.proof.record import RunRecord

_HEAD = 1
AT_ONCE = 10_000
"""Nodes that are asked for in one question: no database takes more than some 30,000 names."""
_NONE = Head(0, merkle.EMPTY, 0.0, {}, counts=merkle.EMPTY)


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A run on record that left none in the chain: it ended before there was one."""

    experiment: str
    verdict: str | None


def append(change: Change, class_version: ClassVersion, make: Callable[[int], RunRecord]) -> None:
    """Append the record of a run, and sign the head. ``make`` is told which run of its class
    version it is."""
    session = change.session
    row = session.get(HeadRow, _HEAD, with_for_update=True)
    head = _NONE if row is None else Head.from_json(read(row.document))
    if head.counts is None:
        run_counts.fill(session, head.runs)
    if not head.signatures:
        checkpoints.sign_all(change)
    number, counted = run_counts.count_one(session, class_version)
    record = make(number)
    nodes = merkle.completed(head.size, record.leaf, node_of(session))
    session.add(
        RunRow(
            leaf=head.size,
            experiment_id=record.experiment,
            request_class=record.request_class,
            version=record.version,
            number=number,
            document=record.written.decode("utf-8"),
            nodes=b"".join(nodes).hex(),
        )
    )
    session.flush()
    size = head.size + 1
    grown = Head(
        size,
        merkle.root(size, node_of(session)),
        max(change.now, head.time, record.ended),
        runs={},
        counts=counted,
    )
    document = written(grown.signed_by(change.keys))
    if row is None:
        session.add(HeadRow(id=_HEAD, document=document))
    else:
        row.document = document


def written(head: Head) -> str:
    """Write a head down, without the runs that it counts: these are kept by themselves."""
    return json.dumps((head if head.counts is None else replace(head, runs={})).to_json())


def bare_head_of(session: Session) -> Head:
    """Read the head as it was signed last, without the runs that it counts: these may be many."""
    row = session.get(HeadRow, _HEAD)
    return _NONE if row is None else Head.from_json(read(row.document))


def head_of(session: Session) -> Head:
    """Read the head as it was signed last, with the runs that it counts."""
    head = bare_head_of(session)
    return head if head.counts is None else replace(head, runs=run_counts.counted_runs(session))


def signed(head: Head, keys: tuple[SigningKey, ...], now: float) -> Head:
    """Sign a head anew, as of now. Without keys it stays as it is."""
    return replace(head, time=max(now, head.time)).signed_by(keys) if keys else head


def node_of(session: Session) -> merkle.Node:
    """Look nodes up in the database, each once."""
    known: dict[int, str] = {}

    def node(level: int, index: int) -> bytes:
        last = ((index + 1) << level) - 1
        if last not in known:
            known[last] = session.scalars(select(RunRow.nodes).where(RunRow.leaf == last)).one()
        return bytes.fromhex(known[last][64 * level : 64 * (level + 1)])

    return node


def looked_up(session: Session, proofs: Callable[[merkle.Node], object]) -> merkle.Node:
    """Look up all at once, a few thousand to a question, the nodes that these proofs are made of.
    Which these are does not go by what they say."""
    last = set[int]()

    def note(level: int, index: int) -> bytes:
        last.add(((index + 1) << level) - 1)
        return b""

    proofs(note)
    wanted, known = sorted(last), dict[int, str]()
    for start in range(0, len(wanted), AT_ONCE):
        some = RunRow.leaf.in_(wanted[start : start + AT_ONCE])
        known |= dict(session.execute(select(RunRow.leaf, RunRow.nodes).where(some)).tuples().all())

    def node(level: int, index: int) -> bytes:
        nodes = known[((index + 1) << level) - 1]
        return bytes.fromhex(nodes[64 * level : 64 * (level + 1)])

    return node


def runs_of(session: Session, class_version: ClassVersion, size: int) -> Iterator[RunRow]:
    """List the runs of a class version whose records are whole, in their order, among the first
    ``size`` of all."""
    name, version = class_version
    query = select(RunRow).where(
        RunRow.request_class == name,
        RunRow.version == version,
        RunRow.leaf < size,
        RunRow.remains.is_(None),
    )
    yield from session.scalars(query.order_by(RunRow.number))


def unsigned(session: Session, class_version: ClassVersion) -> list[Unsigned]:
    """List what ran on a class version, taught something and left no record."""
    name, version = class_version
    query = select(ExperimentRow).where(
        ExperimentRow.request_class == name,
        ExperimentRow.lesson.is_not(None),
        ExperimentRow.armed_at.is_not(None),
        ExperimentRow.id.not_in(select(RunRow.experiment_id)),
    )
    return [
        Unsigned(row.id, row.verdict)
        for row in session.scalars(query.order_by(ExperimentRow.ended_at, ExperimentRow.id))
        if (row.lesson or {}).get("version") == version
    ]
