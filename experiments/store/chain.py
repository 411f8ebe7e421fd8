"""The chain of all runs there ever were: records as the leaves of one Merkle tree, and its head.

A record is appended in the transaction that ends its experiment, so there is never one without the
other. Nothing here is changed or deleted, but for the head, which is signed anew each time, and
for records that :mod:`ldfi.experiments.store.checkpoints` drops: their hashes stay. What is on
record is signed only where it is what was signed before
(:mod:`ldfi.experiments.store.chain_check`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.checker import merkle
from ldfi.checker.canonical import read
from ldfi.checker.head import ClassVersion, Head, SigningKey, counts_root
from ldfi.checker.record import RunRecord
from ldfi.errors import Conflict
from ldfi.experiments.store import certificates, chain_check, checkpoints, run_counts
from ldfi.experiments.store.chain_check import HEAD, NONE, ChainCheck, node_of
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import ExperimentRow, HeadRow, RunRow

_log = logging.getLogger("ldfi")


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A run on record that left none in the chain: it ended before there was one."""

    experiment: str
    verdict: str | None


def append(change: Change, class_version: ClassVersion, make: Callable[[int], RunRecord]) -> None:
    """Append the record of a run, and sign the head. ``make`` is told which run of its class
    version it is. To what is not what was signed nothing is appended, and people are told: then the
    run is on record and in no chain."""
    session = change.session
    found = _looked_at(change, lambda head: run_counts.changed(session, class_version, head.counts))
    if found.unsound:
        return
    head = found.head
    number, counted = run_counts.count_one(session, class_version)
    record = make(number)
    node = node_of(session)
    nodes = merkle.completed(head.size, record.leaf, node)
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
        merkle.root(size, node),
        max(change.now, head.time, record.ended),
        runs={},
        counts=counted,
        certificates=head.certificates,
    )
    _write(change, grown, found)


def certify(
    change: Change, settings: Mapping[str, Any], given: Iterable[certificates.CampaignCertificate]
) -> None:
    """Make certificates that are given out leaves of their tree, and sign the head. ``settings``:
    what their campaign was asked for."""
    session = change.session
    found = _looked_at(change, lambda head: certificates.changed(session, head.certificates))
    if found.unsound or not certificates.put(change, settings, given):
        return
    head = replace(found.head, time=max(change.now, found.head.time))
    _write(change, replace(head, certificates=certificates.tree(session)), found)


def adopt(change: Change) -> Head:
    """Sign the chain on record as it is, for whoever has the key vouches for it.

    Raises Conflict where it does not even follow from itself, or nobody has a key.
    """
    session = change.session
    found = chain_check.check(session, change.keys, lock=True)
    wrong = found.unsound or next(_unlike(session, found.head), "")
    if wrong:
        raise Conflict(f"{wrong}; restore a backup")
    if not change.keys:
        raise Conflict("there is no key to sign with; set LDFI_SIGNING_KEY")
    if found.head.counts is None:
        run_counts.fill(session, found.head.runs)
    checkpoints.sign_all(change)
    head = replace(found.head, time=max(change.now, found.head.time))
    _write(change, replace(head, certificates=certificates.tree(session)), ChainCheck(NONE))
    chain_check.settle(change)
    change.audit("signed", "chain of runs", f"as it is: {found.head.size} runs")
    return head_of(session)


def _looked_at(change: Change, changed: Callable[[Head], str]) -> ChainCheck:
    """Look whether we may go on with the chain on record, and let nobody else do so meanwhile. If
    not, people are told. ``changed``: says what of the rest is not what the head was made of."""
    session = change.session
    found = chain_check.check(session, change.keys, lock=True)
    if change.keys and not found.wrong:
        found = replace(found, unsound=changed(found.head))
    if found.wrong:
        chain_check.tell(change, found.wrong, found.head)
    else:
        chain_check.settle(change)
    if not found.unsound and found.head.counts is None:
        run_counts.fill(session, found.head.runs)
    return found


def _unlike(session: Session, head: Head) -> Iterator[str]:
    """Report what on record is not what was hashed."""
    leaves = []
    for row in session.scalars(select(RunRow).order_by(RunRow.leaf)):
        hashed, said = merkle.leaf(row.document.encode()), row.nodes[: checkpoints.HASH]
        leaves.append(bytes.fromhex(said))
        if row.remains is None and hashed.hex() != said:
            yield f"run {row.leaf} is not what was hashed"
    if merkle.root_of(leaves) != head.root:
        yield "the runs on record are not those of the head"
    runs = head.runs if head.counts is None else run_counts.counted_runs(session)
    if sum(runs.values()) != head.size or head.counts not in {None, counts_root(runs)}:
        yield "the counts of runs are not those of the head"
    yield from certificates.unlike(session)


def _write(change: Change, head: Head, found: ChainCheck) -> None:
    """Put the head on record, signed where it may be."""
    document = written(head.signed_by(() if found.wrong else change.keys))
    change.session.merge(HeadRow(id=HEAD, document=document))


def written(head: Head) -> str:
    """Write a head down, without the runs that it counts: these are kept by themselves."""
    return json.dumps((head if head.counts is None else replace(head, runs={})).to_json())


def bare_head_of(session: Session) -> Head:
    """Read the head as it was signed last, without the runs that it counts: these may be many."""
    row = session.get(HeadRow, HEAD)
    return NONE if row is None else Head.from_json(read(row.document))


def head_of(session: Session) -> Head:
    """Read the head as it was signed last, with the runs that it counts."""
    head = bare_head_of(session)
    return head if head.counts is None else replace(head, runs=run_counts.counted_runs(session))


def signed(session: Session, head: Head, keys: tuple[SigningKey, ...], now: float) -> Head:
    """Sign the head on record anew, as of now. Without keys it stays as it is, and where it is not
    what was signed before."""
    if not keys:
        return head
    wrong = chain_check.check(session, keys).wrong
    wrong = wrong or certificates.changed(session, head.certificates)
    if not wrong and head.size:
        wrong = "; ".join(head.wrong(chain_check.ours(keys)))
    if wrong:
        _log.error("the head of the chain is not signed anew: %s", wrong)
        return head
    return replace(head, time=max(now, head.time)).signed_by(keys)


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
