"""Records of runs are dropped by age, and what is left of them is signed.

Never those that a certificate on record names, or what a class stands at, or a finding; nor the
first slot of a proof of which the second is kept. What is to be dropped has to be what was hashed,
and what is left from before has to be what was signed: nobody signs what somebody has changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, exists, select, update
from sqlalchemy.orm import Session

from ldfi.experiments.errors import Conflict
from ldfi.experiments.store.database import Change, Database
from ldfi.experiments.store.retention import LOT, Pruned, Told
from ldfi.experiments.store.schema import (
    BalanceRow,
    CampaignRow,
    CheckpointRow,
    ExperimentRow,
    FindingRow,
    HeadRow,
    RunRow,
)
from ldfi.proof.canonical import read
from ldfi.proof.checkpoint import Checkpoint, Remains
from ldfi.proof.head import ClassVersion, SigningKey, public_keys
from ldfi.proof.record import RunRecord

WHAT: Final = "records of runs"


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
        for start in range(0, len(some), LOT):
            with database.read() as session:
                dropping = _prepared(
                    session, database.keys, class_version, some[start : start + LOT], now
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


def due(session: Session, keys: Sequence[SigningKey], before: float) -> Pruned:
    """Count the records that would go, pruned by whoever has these keys. Nothing is changed."""
    leaves = _due(session, before) if _may_sign(session, keys) else {}
    return Pruned(WHAT, sum(map(len, leaves.values())), before)


def left(session: Session, class_version: ClassVersion) -> list[Remains]:
    """Read what is left of the pruned runs of a class version, in their order."""
    name, version = class_version
    query = select(RunRow.remains).where(
        RunRow.request_class == name, RunRow.version == version, RunRow.remains.is_not(None)
    )
    found = session.scalars(query.order_by(RunRow.number))
    return [Remains.from_json({**read(each), "path": []}) for each in found if each is not None]


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
    return bool(keys) or not _chain_is_signed(session, for_update=for_update)


def _chain_is_signed(session: Session, *, for_update: bool = False) -> bool:
    query = select(HeadRow.document)
    head = session.scalar(query.with_for_update() if for_update else query)
    return head is not None and bool(json.loads(head)["signatures"])


def _due(session: Session, before: float) -> dict[ClassVersion, list[int]]:
    rested = set(_rested_on(session))
    query = select(RunRow.request_class, RunRow.version, RunRow.leaf, RunRow.experiment_id)
    old = session.execute(query.where(*_old(before)).order_by(RunRow.leaf))
    found: dict[ClassVersion, dict[int, str]] = {}
    for name, version, leaf, experiment in old:
        if experiment not in rested:
            found.setdefault((name, version), {})[leaf] = experiment
    chosen = {each: _but_first_slots(session, each, found[each]) for each in found}
    return {each: leaves for each, leaves in chosen.items() if leaves}


def _old(before: float) -> list[ColumnElement[bool]]:
    """Choose what ended before, and whose lesson is told by what its class stands at."""
    over = exists().where(
        ExperimentRow.id == RunRow.experiment_id,
        ExperimentRow.ended_at < before,
        ExperimentRow.lesson.is_(None),
    )
    shown = RunRow.experiment_id.in_(select(FindingRow.experiment_id))
    return [RunRow.remains.is_(None), over, ~shown]


def _rested_on(session: Session) -> Iterator[str]:
    """List the experiments that certificates name, and what classes stand at."""
    for certificates in session.scalars(select(CampaignRow.certificates)):
        yield from _named(certificates)
    for document in session.scalars(select(BalanceRow.document)):
        yield from _named(document)


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
            each = read(document)
            opened.add((tuple(each["hypothesis"]), round(each["level"]["opening"][0], 9)))
    if not opened:
        return list(chosen)
    name, version = class_version
    query = select(RunRow.leaf, RunRow.document).where(
        RunRow.request_class == name, RunRow.version == version, RunRow.remains.is_(None)
    )
    whole = {leaf: read(document) for leaf, document in session.execute(query) if leaf in chosen}
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
    be; ``said``: by leaf, what is left of each."""

    was: Checkpoint | None
    made: Checkpoint
    said: dict[int, str]


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
    ours = [key for each in keys for key in public_keys(each.public_pem())]
    if was is None:
        wrong = bool(remains)
    else:
        taken_out = not was.signatures and _chain_is_signed(session)
        wrong = taken_out or any(was.changed(class_version, remains, ours))
    if wrong:
        raise Conflict(
            f"what is left of pruned runs of {class_version[0]} is not what was signed; "
            "restore a backup"
        )
    said: dict[int, str] = {}
    query = select(RunRow).where(RunRow.leaf.in_(leaves), RunRow.remains.is_(None))
    for row in session.scalars(query):
        record = RunRecord.from_json(read(row.document))
        if record.leaf.hex() != row.nodes[:64]:
            raise Conflict(f"run {row.leaf} is not what was hashed; restore a backup")
        remain = Remains.of(record, row.leaf)
        said[row.leaf] = json.dumps(remain.said())
        remains.append(remain)
    made = Checkpoint.over(class_version, remains, now).signed_by(keys)
    return _Dropping(was, made, said)


def _drop(change: Change, dropping: _Dropping) -> int:
    """Drop these records. Where somebody else drops some just now they are left for another time,
    for it is not of them all that was signed."""
    session, made = change.session, dropping.made
    name, version = made.request_class, made.version
    if not dropping.said or signed(session, (name, version)) != dropping.was:
        return 0
    session.execute(
        update(RunRow),
        [{"leaf": leaf, "remains": said, "document": ""} for leaf, said in dropping.said.items()],
    )
    document = json.dumps(made.to_json())
    session.merge(CheckpointRow(request_class=name, version=version, document=document))
    return len(dropping.said)
