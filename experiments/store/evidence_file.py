"""Certificates with everything they rest on: the file that :mod:`ldfi.checker` checks by itself."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from ldfi.checker import merkle
from ldfi.checker.canonical import read
from ldfi.checker.checkpoint import Remains
from ldfi.checker.document import FORMAT, EvidenceFile
from ldfi.checker.errors import Unreadable
from ldfi.checker.head import ClassVersion, Head, SigningKey
from ldfi.checker.verify import Against, verify
from ldfi.errors import Conflict
from ldfi.experiments.store import certificates, chain, chain_check, checkpoints
from ldfi.experiments.store.certificates import CampaignCertificate
from ldfi.experiments.store.schema import ClassRow, ExperimentRow, RunRow

_log = logging.getLogger("ldfi")


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of a class version: ``whole`` ones, and what is ``left`` of those pruned."""

    whole: Sequence[RunRow]
    left: Sequence[Remains]

    def leaves(self) -> Iterator[int]:
        """List the leaves of them all."""
        yield from (row.leaf for row in self.whole)
        yield from (each.index for each in self.left)


def _runs(session: Session, class_version: ClassVersion, size: int) -> _Runs:
    left = checkpoints.left(session, class_version)
    return _Runs(list(chain.runs_of(session, class_version, size)), left)


def evidence_file(
    session: Session,
    certified: Iterable[CampaignCertificate],
    keys: tuple[SigningKey, ...],
    now: float,
    since: int | None = None,
) -> dict[str, Any]:
    """Write certificates, every run of their class versions, and the head, signed as of now: where
    all of it is what was signed before. If not, the head is as it is on record.

    ``since``: the size of a head that somebody kept; it is proved that the chain grew from there.
    Raises Conflict where it never was that long.
    """
    on_record = chain.head_of(session)
    head = chain.signed(session, on_record, keys, now)
    certified = list(certified)
    signatures = certificates.certified(session, certified)
    runs = {each.class_version: _runs(session, each.class_version, head.size) for each in certified}
    leaves = [leaf for each in runs.values() for leaf in each.leaves()]

    def proofs(node: merkle.Node) -> None:
        for leaf in leaves:
            merkle.inclusion(leaf, head.size, node)
        if since is not None:
            grown(head, since, node)

    node = chain_check.looked_up(session, proofs)
    document = {
        "format": FORMAT,
        "head": head.to_json() if head.size or head.certificates else None,
        "grown": [] if since is None else [grown(head, since, node)],
        "classes": [
            {
                **_class(session, each, runs[each.class_version], head, node),
                "certified": None
                if (mine := signatures.get(each.class_version)) is None
                else mine.to_json(),
            }
            for each in certified
        ],
    }
    if certified and head is not on_record and (wrong := _wrong(document, keys, now)):
        _log.error("evidence is not signed, for it is not what was signed before: %s", wrong)
        document["head"] = on_record.to_json()
    return document


def _wrong(document: dict[str, Any], keys: tuple[SigningKey, ...], now: float) -> str:
    """Return what whoever checks this would find to be false, but for what verdicts came from."""
    try:
        asked = Against(chain_check.ours(keys), now, weigh=False)
        found = verify(EvidenceFile.from_json(document), asked)
    except Unreadable as error:
        return str(error)
    return "; ".join(found.false)


def grown(head: Head, since: int, node: merkle.Node) -> dict[str, Any]:
    """Prove that the chain grew from what it was. Raises Conflict where it never was that long."""
    if since > head.size:
        raise Conflict(f"the chain has {head.size} runs: it never grew from {since}")
    path = merkle.consistency(since, head.size, node)
    return {"from": since, "path": [each.hex() for each in path]}


def version_of(session: Session, name: str, campaign_id: str) -> int:
    """Return which version of a class a campaign that is over has certified: that of its last run
    there, else the newest."""
    written = certificates.version_of(session, campaign_id, name)
    if written is not None:
        return written
    query = (
        select(RunRow.version, ExperimentRow.lesson)
        .outerjoin_from(ExperimentRow, RunRow, RunRow.experiment_id == ExperimentRow.id)
        .where(
            ExperimentRow.campaign_id == campaign_id,
            ExperimentRow.request_class == name,
            or_(ExperimentRow.lesson.is_not(None), RunRow.leaf.is_not(None)),
        )
    )
    newest = session.execute(query.order_by(ExperimentRow.ended_at.desc()).limit(1)).first()
    if newest is not None:
        of_run, result = newest
        found = of_run if of_run is not None else (result or {}).get("version")
        if found is not None:
            return int(found)
    known = session.get(ClassRow, name)
    return 1 if known is None else known.version


def _pruned(
    session: Session,
    class_version: ClassVersion,
    left: Iterable[Remains],
    head: Head,
    node: merkle.Node,
) -> dict[str, Any]:
    """Write what is left of runs that were dropped; nothing where none were."""
    checkpoint = checkpoints.signed(session, class_version)
    if checkpoint is None:
        return {}
    runs = [
        replace(each, path=tuple(merkle.inclusion(each.index, head.size, node))).to_json()
        for each in left
    ]
    return {"pruned": {"checkpoint": checkpoint.to_json(), "runs": runs}}


def _class(
    session: Session,
    each: CampaignCertificate,
    runs: _Runs,
    head: Head,
    node: merkle.Node,
) -> dict[str, Any]:
    return {
        "request_class": each.request_class,
        "version": each.version,
        "certificate": each.certificate,
        "runs": [
            {
                "index": row.leaf,
                "record": read(row.document),
                "path": [one.hex() for one in merkle.inclusion(row.leaf, head.size, node)],
            }
            for row in runs.whole
        ],
        **_pruned(session, each.class_version, runs.left, head, node),
        "unsigned": [
            {"experiment": one.experiment, "verdict": one.verdict}
            for one in chain.unsigned(session, each.class_version)
        ],
    }
