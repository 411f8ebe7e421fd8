"""Certificates as leaves of a tree that the head signs, beside the tree of runs.

There is one leaf for each campaign and class, which is replaced when the certificate is written
anew. A campaign has a few and few are written, so the root is made of all their hashes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.checker import merkle
from ldfi.checker.canonical import read
from ldfi.checker.certificate_signature import Certified
from ldfi.checker.head import CertificateTree, ClassVersion
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import CampaignRow, CertificateRow


@dataclass(frozen=True, slots=True)
class CampaignCertificate:
    """A certificate as a campaign gives it out."""

    campaign: str
    request_class: str
    version: int
    certificate: dict[str, Any]

    @property
    def class_version(self) -> ClassVersion:
        """Return which version of which class it is of."""
        return self.request_class, self.version


def tree(session: Session) -> CertificateTree | None:
    """Return the tree over the certificates on record; None where there is none."""
    return _tree(_hashes(session))


def changed(session: Session, signed: CertificateTree | None) -> str:
    """Return a message that the leaves on record are not those that were ``signed``; empty where
    they are."""
    same = tree(session) == signed
    return "" if same else "the certificates on record are not those that were signed"


def unlike(session: Session) -> Iterator[str]:
    """Report certificates on record that are not what was hashed."""
    for row in session.scalars(select(CertificateRow)):
        campaign = session.get(CampaignRow, row.campaign_id)
        listed = [] if campaign is None else campaign.certificates
        mine = [e["certificate"] for e in listed if e["request_class"] == row.request_class]
        leaves = {_read(row).leaf((row.request_class, row.version), each).hex() for each in mine}
        if row.hashed not in leaves:
            yield f"the certificate of {row.request_class}, {row.campaign_id}, was changed"


def certified(
    session: Session, written: Iterable[CampaignCertificate]
) -> dict[ClassVersion, Certified]:
    """Return what these certificates are signed with, those of them that are: by class version."""
    node, size = merkle.lookup(hashes := _hashes(session)), len(hashes)
    found = {}
    for each in written:
        row = _row(session, each.campaign, each.request_class)
        if row is not None and row.version == each.version:
            path = tuple(merkle.inclusion(row.place, size, node))
            found[each.class_version] = replace(_read(row), path=path)
    return found


def version_of(session: Session, campaign: str, request_class: str) -> int | None:
    """Return the class version of a certificate; None where it is no leaf."""
    row = _row(session, campaign, request_class)
    return None if row is None else row.version


def put(
    change: Change, settings: Mapping[str, Any], written: Iterable[CampaignCertificate]
) -> bool:
    """Make leaves of certificates, in the place of those that there were; return whether anything
    has changed. Raises ValueError for what has no canonical form."""
    session, any_news = change.session, False
    size = len(_hashes(session))
    for each in written:
        row = _row(session, each.campaign, each.request_class)
        place = size if row is None else row.place
        made = Certified(each.campaign, settings, change.now, place)
        if row is not None and _same(row, made, each):
            continue
        leaf, any_news = made.leaf(each.class_version, each.certificate), True
        if row is None:
            row = CertificateRow(
                place=place, campaign_id=each.campaign, request_class=each.request_class
            )
            session.add(row)
            size += 1
        row.version, row.hashed = each.version, leaf.hex()
        row.signed_with = json.dumps({"settings": settings, "time": change.now})
        session.flush()
    return any_news


def _same(row: CertificateRow, made: Certified, each: CampaignCertificate) -> bool:
    before = replace(made, time=_read(row).time)
    return before.leaf(each.class_version, each.certificate).hex() == row.hashed


def _read(row: CertificateRow) -> Certified:
    said = read(row.signed_with)
    return Certified.from_json(
        {**said, "campaign": row.campaign_id, "place": row.place, "path": []}
    )


def _row(session: Session, campaign: str, request_class: str) -> CertificateRow | None:
    return session.scalars(
        select(CertificateRow).where(
            CertificateRow.campaign_id == campaign, CertificateRow.request_class == request_class
        )
    ).one_or_none()


def _hashes(session: Session) -> list[bytes]:
    query = select(CertificateRow.hashed).order_by(CertificateRow.place)
    return [bytes.fromhex(each) for each in session.scalars(query)]


def _tree(hashes: list[bytes]) -> CertificateTree | None:
    return CertificateTree(len(hashes), merkle.root_of(hashes)) if hashes else None
