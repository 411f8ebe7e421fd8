"""Evidence files of a simulated service, checked by the program that knows nothing of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from ldfi.checker.document import EvidenceFile
from ldfi.checker.head import Head, SigningKey
from ldfi.checker.record import RunRecord
from ldfi.checker.verify import Against, Examined, verify
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.store import campaigns, chain
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.evidence_file import evidence_file
from ldfi.testing.world import World
from tests.checker.chain import key_pem, trusted

KEY = SigningKey(key_pem())


def file_of(
    world: World,
    campaign: Campaign,
    since: int | None = None,
    keys: tuple[SigningKey, ...] = (KEY,),
) -> dict[str, Any]:
    """Write the evidence file of a campaign as JSON, and read that."""
    given = campaign.certificates()
    with world.database.change(world.now) as change:
        campaigns.certify(change, campaign, given)  # as the API does
    certified = campaigns.written(campaign, given)
    with world.database.read() as session:
        document = evidence_file(session, certified, keys, world.now, since)
    written: dict[str, Any] = json.loads(json.dumps(document))
    return written


def checked(
    world: World,
    document: dict[str, Any],
    earlier: Head | None = None,
    max_age: float | None = None,
) -> Examined:
    """Verify a file against :data:`KEY`, a second after the world's last moment."""
    against = Against(trusted(KEY), world.now + 1, earlier, max_age)
    return verify(EvidenceFile.from_json(document), against)


def append(change: Change, records: Iterable[RunRecord]) -> None:
    """Append records to the chain of a database, each with the number that it has."""
    for each in records:
        chain.append(change, (each.request_class, each.version), partial(_as_it_is, each))


def _as_it_is(record: RunRecord, number: int) -> RunRecord:
    assert record.number == number
    return record
