"""A database that somebody has rewritten by hand: nothing in it is signed, and people are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from ldfi.checker import merkle
from ldfi.checker.__main__ import BORNE_OUT, exit_code
from ldfi.checker.document import EvidenceFile
from ldfi.checker.errors import Unreadable
from ldfi.checker.head import Head, SigningKey
from ldfi.checker.verify import Against, verify
from ldfi.errors import Conflict
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database, campaigns, chain, chain_check, run_counts
from ldfi.experiments.store.certificates import CampaignCertificate
from ldfi.experiments.store.evidence_file import evidence_file
from ldfi.experiments.store.schema import (
    AuditRow,
    CampaignRow,
    CertificateRow,
    CountNodeRow,
    HeadRow,
    NotificationRow,
    RunCountRow,
    RunRow,
)
from ldfi.testing.world import QUICK, World
from tests.checker.chain import key_pem, trusted
from tests.experiments.store.evidence import KEY
from tests.experiments.store.lives import Again

Rewriting = Callable[[Session], None]
ON_SQLITE = pytest.mark.parametrize("again", ["sqlite"], indirect=True)
"""What is hashed and signed is the same on each database."""


def one_campaign_over(database: Database) -> tuple[World, Campaign]:
    """A campaign that is over, and another that has begun."""
    world = World(database)
    world.finish(world.start(QUICK))
    campaign = world.start(QUICK)
    world.engine.scheduler.shut_down("restart", world.now)
    return world, campaign


def rewritten(session: Session, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the head on record, and leave its signatures as they are."""
    row = session.get_one(HeadRow, 1)
    head = json.loads(row.document)
    change(head)
    row.document = json.dumps(head)


def the_first(session: Session) -> CampaignRow:
    """The campaign that is over since the beginning."""
    return session.scalars(select(CampaignRow).order_by(CampaignRow.created_at).limit(1)).one()


def _a_verdict(session: Session) -> None:
    row = session.scalars(select(RunRow).order_by(RunRow.leaf)).first()
    assert row is not None
    row.document = row.document.replace('"verdict":"', '"verdict":"un', 1)


def _a_verdict_and_all_nodes(session: Session) -> None:
    _a_verdict(session)
    rows = list(session.scalars(select(RunRow).order_by(RunRow.leaf)))
    leaves = [merkle.leaf(row.document.encode()) for row in rows]
    node = merkle.lookup(leaves)
    for row in rows:
        row.nodes = b"".join(merkle.completed(row.leaf, leaves[row.leaf], node)).hex()


def _an_inner_node(session: Session) -> None:
    row = session.get_one(RunRow, 1)
    row.nodes = merkle.leaf(b"anything").hex() + row.nodes[64:]
    row.document, row.remains = "", "gone"


def _all_nodes_and_the_head(session: Session) -> None:
    _a_verdict_and_all_nodes(session)
    rows = list(session.scalars(select(RunRow).order_by(RunRow.leaf)))
    root = merkle.root_of([merkle.leaf(row.document.encode()) for row in rows])
    rewritten(session, lambda head: head.update(root=root.hex()))


def _all_of_it_unsigned(session: Session) -> None:
    _all_nodes_and_the_head(session)
    _no_signatures(session)


def _no_signatures(session: Session) -> None:
    rewritten(session, lambda head: head.update(signatures={}, keys=[]))


def _signed_by_a_stranger(session: Session) -> None:
    row = session.get_one(HeadRow, 1)
    head = Head.from_json(json.loads(row.document))
    row.document = chain.written(head.signed_by([SigningKey(key_pem())]))


def _the_last_run_gone(session: Session) -> None:
    last = chain.bare_head_of(session).size - 1
    session.execute(delete(RunRow).where(RunRow.leaf == last))


def _the_head_gone(session: Session) -> None:
    session.execute(delete(HeadRow))


def _an_unreadable_head(session: Session) -> None:
    session.get_one(HeadRow, 1).document = '{"format": 1}'


def _a_later_time(session: Session) -> None:
    rewritten(session, lambda head: head.update(time=head["time"] + 9))


def _a_count(session: Session) -> None:
    session.execute(update(RunCountRow).values(runs=RunCountRow.runs + 1))


def _a_count_and_its_nodes(session: Session) -> None:
    runs = {each: many + 1 for each, many in run_counts.counted_runs(session).items()}
    for table in (RunCountRow, CountNodeRow):
        session.execute(delete(table))
    run_counts.fill(session, runs)


def _nodes_of_counts_gone(session: Session) -> None:
    session.execute(delete(CountNodeRow))
    session.execute(update(RunCountRow).values(version=7))


def _a_certificate(session: Session) -> None:
    row = the_first(session)
    changed: list[Any] = json.loads(json.dumps(row.certificates))
    changed[0]["certificate"]["axioms"]["impossible"].append(["error@made-up"])
    row.certificates = changed


def _a_certificate_and_its_leaf(session: Session) -> None:
    _a_certificate(session)
    row = the_first(session)
    leaf = session.scalars(
        select(CertificateRow).where(CertificateRow.campaign_id == row.id)
    ).first()
    assert leaf is not None
    leaf.hashed = merkle.leaf(b"anything").hex()


def _the_leaves_of_certificates_gone(session: Session) -> None:
    session.execute(delete(CertificateRow))


OF_THE_HEAD = (
    *(_a_verdict_and_all_nodes, _all_nodes_and_the_head, _all_of_it_unsigned, _no_signatures),
    *(_signed_by_a_stranger, _the_last_run_gone, _the_head_gone, _an_unreadable_head),
    _a_later_time,
)
"""Whoever appends a run finds these."""
OF_COUNTS = (_a_count, _a_count_and_its_nodes, _nodes_of_counts_gone)
OF_CERTIFICATES = (_a_certificate_and_its_leaf, _the_leaves_of_certificates_gone)
"""Whoever signs a certificate finds these."""
OF_WHAT_IS_GIVEN_OUT = (_a_verdict, _a_certificate)
"""Whoever gives out evidence finds these; until then the head is what was signed."""


def evidence(world: World) -> dict[str, Any]:
    """What the service gives out of the campaign that is over, a minute later."""
    with world.database.read() as session:
        row = the_first(session)
        given = [
            CampaignCertificate(row.id, each["request_class"], 1, each["certificate"])
            for each in row.certificates
        ]
        document = evidence_file(session, given, world.database.keys, world.now + 60)
    found: dict[str, Any] = json.loads(json.dumps(document))
    return found


def given_out(world: World) -> dict[str, Any] | None:
    """The same; None where the service gives out none."""
    try:
        return evidence(world)
    except (Conflict, Unreadable):
        return None


def code(world: World, document: dict[str, Any]) -> int | None:
    try:
        read = EvidenceFile.from_json(document)
        return exit_code(verify(read, Against(trusted(KEY), world.now + 61)))
    except Unreadable:
        return None


def goes_on(world: World) -> None:
    """Have the service end one more run, and write a certificate."""
    world.engine = Engine(world.database, now=world.now)
    while not any(each.running for each in world.engine.scheduler.state.campaigns.values()):
        world.step()
    while any(each.running for each in world.engine.scheduler.state.campaigns.values()):
        world.step()
    world.engine.scheduler.shut_down("restart", world.now)
    (live,) = world.engine.scheduler.state.campaigns.values()
    with world.database.change(world.now) as change:
        campaigns.certify(change, live, live.certificates())


@ON_SQLITE
def test_what_nobody_has_rewritten_is_signed(again: Again) -> None:
    world, _ = again(one_campaign_over, KEY)
    assert code(world, evidence(world)) == BORNE_OUT
    goes_on(world)
    assert code(world, evidence(world)) == BORNE_OUT
    with world.database.read() as session:
        assert chain_check.check(session, (KEY,)).wrong == ""
        assert "not signed" not in list(session.scalars(select(AuditRow.what)))


@ON_SQLITE
@pytest.mark.parametrize(
    "rewrite",
    [*OF_THE_HEAD, *OF_COUNTS, *OF_CERTIFICATES, *OF_WHAT_IS_GIVEN_OUT],
    ids=lambda each: each.__name__.strip("_"),
)
def test_nothing_that_somebody_has_rewritten_is_signed(again: Again, rewrite: Rewriting) -> None:
    world, _ = again(one_campaign_over, KEY)
    with world.database.read() as session:
        signed_before = chain.head_of(session)
    with world.database.change(world.now) as change:
        rewrite(change.session)
    # When somebody asks for evidence
    document = given_out(world)
    if document is not None:
        head = document["head"]
        assert head is None or head["time"] < world.now + 60, "signed as of when it was asked for"
        assert code(world, document) != BORNE_OUT
    # And when the service goes on
    goes_on(world)
    with world.database.read() as session:
        told = [row.event for row in session.scalars(select(NotificationRow))]
        why = [row.why for row in session.scalars(select(AuditRow)) if row.what == "not signed"]
        row = session.get(HeadRow, 1)
        assert bool(why) == ("not-signed" in told) == (rewrite not in OF_WHAT_IS_GIVEN_OUT)
        if rewrite in (*OF_CERTIFICATES, *OF_WHAT_IS_GIVEN_OUT):
            # runs are appended to what was signed, and the certificates stay what was signed
            assert chain.bare_head_of(session).certificates == signed_before.certificates or not why
        else:
            assert row is None or not fresh(row.document, signed_before)
    document = given_out(world)
    assert document is None or code(world, document) != BORNE_OUT


def fresh(document: str, before: Head) -> bool:
    """Whether the service has signed this, and not only what there was before."""
    try:
        head = Head.from_json(json.loads(document))
    except Unreadable:
        return False
    (key,) = trusted(KEY)
    mine = head.signatures.get(key.id)
    body = replace(head, signatures={}).body()
    return head.size > before.size and mine is not None and key.signed(body, mine)


@ON_SQLITE
def test_whoever_has_the_key_may_vouch_for_what_is_sound(again: Again) -> None:
    world, _ = again(one_campaign_over, KEY)
    with world.database.change(world.now) as change:
        _no_signatures(change.session)
    assert code(world, evidence(world)) != BORNE_OUT
    with world.database.change(world.now, "ann") as change:
        chain.adopt(change)
    assert code(world, evidence(world)) == BORNE_OUT
    goes_on(world)
    assert code(world, evidence(world)) == BORNE_OUT
    # But not for what does not follow from itself
    for rewrite in (_a_verdict, _a_verdict_and_all_nodes, _an_inner_node, _a_count, _a_certificate):
        with (
            pytest.raises(Conflict, match="restore a backup"),
            world.database.change(1.0) as change,
        ):
            rewrite(change.session)
            change.session.flush()
            chain.adopt(change)
