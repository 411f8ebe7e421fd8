"""Records of runs are dropped by age, and what is left of them is signed.

Never those that a certificate on record names, or what a class stands at, or a finding; nor the
first slot of a proof of which the second is kept. What is to be dropped has to be what was hashed,
and what is left from before has to be what was signed: nobody signs what somebody has changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ldfi.checker import merkle
from ldfi.checker.canonical import read
from ldfi.checker.checkpoint import Checkpoint, Remains
from ldfi.checker.fields import Fields, text
from ldfi.checker.head import ClassVersion, SigningKey
from ldfi.checker.record import VERDICTS, RunRecord
from ldfi.errors import Conflict
from ldfi.experiments.store import chain_check
from ldfi.experiments.store.compressed import parse
from ldfi.experiments.store.database import Change, Database
from ldfi.experiments.store.retention import BATCH, Pruned, Told
from ldfi.experiments.store.rewrite_rows import put_anew
from ldfi.experiments.store.schema import (
    CampaignRow,
    CheckpointRow,
    ExperimentRow,
    FindingRow,
    RemainsRow,
    RunRow,
    SnapshotRow,
)

WHAT: Final = "records of runs"
HASH: Final = 64
"""Characters of a hash."""


def prune(
    database: Database, before: float, now: float, who: str, told: Told | None = None
) -> Pruned:
    """Drop the records of runs that ended ``before`` then (Unix seconds), and that nothing rests
    on. Asked again after a crash it goes on. Where the chain is signed and we have no key, none go.

    Raises Conflict where something is not what was hashed or signed.
    """
    with database.read() as session:
        leaves = _due(session, before) if _may_sign(session, database.keys) else {}
    total, gone = sum(map(len, leaves.values())), 0
    for class_version, some in leaves.items():
        for start in range(0, len(some), BATCH):
            with database.read() as session:
                dropping = _prepared(
                    session, database.keys, class_version, some[start : start + BATCH], now
                )
            with database.change(now, who) as change:
                database.lock(change)
                if not _may_sign(change.session, change.keys, for_update=True):
                    return Pruned(WHAT, gone, before)  # the chain has been signed meanwhile
                if not gone:
                    change.audit("pruned", WHAT, f"{total} of them, by age")
                gone += _drop(change, dropping)
            if told is not None:
                told(Pruned(WHAT, total, before), gone)
    return Pruned(WHAT, gone, before)


def going(
    session: Session,
    keys: Sequence[SigningKey],
    before: float,
    compacted: Collection[str],
    stands: Iterable[Any],
) -> list[str]:
    """List the experiments whose records would go, pruned by whoever has these keys once these are
    folded into where classes then stand. Nothing is changed."""
    if not _may_sign(session, keys):
        return []
    due = _due(session, before, compacted, stands)
    leaves = [leaf for some in due.values() for leaf in some]
    found: list[str] = []
    for start in range(0, len(leaves), BATCH):
        some = RunRow.leaf.in_(leaves[start : start + BATCH])
        found += session.scalars(select(RunRow.experiment_id).where(some))
    return found


def left(session: Session, class_version: ClassVersion) -> list[Remains]:
    """Read what is left of the pruned runs of a class version, in their order."""
    name, version = class_version
    row = RunRow
    query = (
        select(row.leaf, row.number, func.substr(row.nodes, 1, HASH), row.remains)
        .where(row.request_class == name, row.version == version, row.remains.is_not(None))
        .order_by(row.number)
    )
    found = session.execute(query).tuples().all()
    came_to = dict(_came_to(session, {key for *_, key in found if key is not None}))
    return [
        Remains(leaf, number, bytes.fromhex(hashed), *came_to[key])
        for leaf, number, hashed, key in found
        if key in came_to
    ]


CameTo = tuple[str | None, tuple[str, ...], tuple[str, ...]]
"""What a run came to: its verdict, what it tried, what fired."""


def _came_to(session: Session, keys: Collection[str]) -> Iterator[tuple[str, CameTo]]:
    wanted = sorted(keys)
    for start in range(0, len(wanted), BATCH):
        some = RemainsRow.key.in_(wanted[start : start + BATCH])
        for row in session.scalars(select(RemainsRow).where(some)):
            said = Fields(read(row.document), "the remains")
            yield (
                row.key,
                (
                    said.text("verdict", VERDICTS) if said.has("verdict") else None,
                    said.many("hypothesis", text),
                    said.many("fired", text),
                ),
            )


def _written(remains: Remains) -> tuple[str, str]:
    """Write down what a run came to, and make the key of it."""
    said = {name: remains.said()[name] for name in ("verdict", "hypothesis", "fired")}
    document = json.dumps(said)
    return hashlib.sha256(document.encode()).hexdigest()[:32], document


def signed(session: Session, class_version: ClassVersion) -> Checkpoint | None:
    """Read who signed that they were pruned; None where none were."""
    row = session.get(CheckpointRow, class_version)
    return None if row is None else Checkpoint.from_json(read(row.document))


def sign_all(change: Change) -> None:
    """Sign what was pruned while nobody had a key, where a key signs the chain for the first time.
    What is not what it was made of is left as it is: then it is found to be false."""
    for row in change.session.scalars(select(CheckpointRow)) if change.keys else ():
        class_version = row.request_class, row.version
        made = Checkpoint.from_json(read(row.document))
        remains = left(change.session, class_version)
        if not made.signatures and not any(made.changed(class_version, remains, ())):
            row.document = json.dumps(made.signed_by(change.keys).to_json())


def _may_sign(session: Session, keys: Sequence[SigningKey], *, for_update: bool = False) -> bool:
    found = chain_check.check(session, keys, lock=for_update)
    return not (found.wrong if keys else found.head.signatures)


def _due(
    session: Session,
    before: float,
    compacted: Collection[str] = (),
    stands: Iterable[Any] | None = None,
) -> dict[ClassVersion, list[int]]:
    """Choose the leaves whose records go. ``compacted``: experiments whose results count as gone;
    ``stands``: where classes stand, if not as on record."""
    if stands is None:
        stands = session.scalars(select(SnapshotRow.document))
    rested = {*_certified(session), *(each for one in stands for each in _named(one))}
    row = RunRow
    query = (
        select(row.request_class, row.version, row.leaf, row.experiment_id, _TAUGHT)
        .join(ExperimentRow, ExperimentRow.id == row.experiment_id)
        .where(
            row.remains.is_(None),
            ExperimentRow.ended_at < before,
            row.experiment_id.not_in(select(FindingRow.experiment_id)),
        )
    )
    found: dict[ClassVersion, dict[int, str]] = {}
    for name, version, leaf, experiment, taught in session.execute(query.order_by(row.leaf)):
        if experiment not in rested and (not taught or experiment in compacted):
            found.setdefault((name, version), {})[leaf] = experiment
    chosen = {each: _but_first_slots(session, each, found[each]) for each in found}
    return {each: leaves for each, leaves in chosen.items() if leaves}


_TAUGHT: Final = ExperimentRow.lesson.is_not(None)


def _certified(session: Session) -> Iterator[str]:
    """List the experiments that certificates on record name."""
    for certificates in session.scalars(select(CampaignRow.certificates)):
        yield from _named(certificates)


def _named(document: Any) -> Iterator[str]:
    """List the experiments whose proof is somewhere in a document."""
    if isinstance(document, dict):
        proof = document.get("proof")
        if isinstance(proof, dict) and "experiment" in proof:
            yield str(proof["experiment"])
        document = [each for name, each in document.items() if name != "proof"]
    if isinstance(document, list):
        for each in document:
            yield from _named(each)


def _but_first_slots(
    session: Session, class_version: ClassVersion, chosen: dict[int, str]
) -> list[int]:
    """Leave out the first slots of proofs of which the second stays."""
    opened = set()
    for leaf, document in _second_slots(session, class_version):
        if leaf not in chosen:
            each = parse(document)
            opened.add((tuple(each["hypothesis"]), round(each["level"]["opening"][0], 9)))
    if not opened:
        return list(chosen)
    name, version = class_version
    query = select(RunRow.leaf, RunRow.document).where(
        RunRow.request_class == name, RunRow.version == version, RunRow.remains.is_(None)
    )
    whole = {leaf: parse(document) for leaf, document in session.execute(query) if leaf in chosen}
    return [
        leaf
        for leaf in chosen
        if (tuple(whole[leaf]["hypothesis"]), round(whole[leaf]["evidence"]["worse"], 9))
        not in opened
    ]


def _second_slots(session: Session, class_version: ClassVersion) -> Iterable[tuple[int, str]]:
    """List the records that rest on another one. The words cannot stand within a text: there its
    quotation marks would be escaped."""
    name, version = class_version
    query = select(RunRow.leaf, RunRow.document).where(
        RunRow.request_class == name,
        RunRow.version == version,
        RunRow.remains.is_(None),
        ~RunRow.document.contains('"opening":null'),
    )
    return [(leaf, document) for leaf, document in session.execute(query)]


@dataclass(frozen=True, slots=True)
class _Dropping:
    """Records that go. ``was``: the checkpoint that there was; ``made``: the one that there will
    be; ``left``: what is left of each."""

    was: Checkpoint | None
    made: Checkpoint
    left: list[Remains]


def _prepared(
    session: Session,
    keys: Sequence[SigningKey],
    class_version: ClassVersion,
    leaves: Sequence[int],
    now: float,
) -> _Dropping:
    """Check what was signed of a class version and what is to go, and sign what will be left of all
    that ever were. That takes longer with each record, so others may write meanwhile."""
    was, remains = signed(session, class_version), left(session, class_version)
    head, ours = chain_check.check(session, keys).head, chain_check.ours(keys)
    if was is None:
        wrong = bool(remains)
    else:
        taken_out = not was.signatures and bool(head.signatures)
        wrong = taken_out or any(was.changed(class_version, remains, ours))
    if wrong:
        raise Conflict(
            f"what is left of pruned runs of {class_version[0]} is not what was signed; "
            "restore a backup"
        )
    new: list[Remains] = []
    size = head.size
    node = chain_check.looked_up(
        session, lambda node: [merkle.inclusion(leaf, size, node) for leaf in leaves]
    )
    query = select(RunRow).where(RunRow.leaf.in_(leaves), RunRow.remains.is_(None))
    for row in session.scalars(query):
        record = RunRecord.from_json(read(row.document))
        path = merkle.inclusion(row.leaf, size, node)
        if not merkle.included(record.leaf, row.leaf, size, path, head.root):
            raise Conflict(f"run {row.leaf} is not what was hashed; restore a backup")
        new.append(Remains.of(record, row.leaf))
    made = Checkpoint.over(class_version, [*remains, *new], now).signed_by(keys)
    return _Dropping(was, made, new)


def _drop(change: Change, dropping: _Dropping) -> int:
    """Drop these records. Where somebody else drops some just now they are left for another time,
    for it is not of them all that was signed."""
    session, made = change.session, dropping.made
    name, version = made.request_class, made.version
    if not dropping.left or signed(session, (name, version)) != dropping.was:
        return 0
    written = {each.index: _written(each) for each in dropping.left}
    for key, said in set(written.values()):
        session.merge(RemainsRow(key=key, document=said))
    small = {leaf: {"remains": key, "document": ""} for leaf, (key, _) in written.items()}
    put_anew(session, RunRow.leaf, small)
    document = json.dumps(made.to_json())
    session.merge(CheckpointRow(request_class=name, version=version, document=document))
    return len(dropping.left)
