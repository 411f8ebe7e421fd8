"""The tables. Times are Unix seconds; documents are JSON. Changes need a migration."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Float, Index, Integer, String, Text
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from ldfi.experiments.store.compressed import Compressed


class Base(DeclarativeBase):
    """The root of all tables."""


def finding_id(request_class: str, faults: Iterable[str]) -> str:
    """Make the id of a failing set of a class: the same whoever finds it, and when."""
    text = "\n".join([request_class, *sorted(faults)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _tried(context: DefaultExecutionContext) -> str:
    row = context.get_current_parameters()  # type: ignore[no-untyped-call]
    return finding_id(row["request_class"], row["hypothesis"])


class CampaignRow(Base):
    """A campaign: what was asked for, and how far it is."""

    __tablename__ = "campaign"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(Text, default="")
    state: Mapped[str] = mapped_column(String(16), index=True)
    reason: Mapped[str] = mapped_column(Text, default="")
    definition: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_by: Mapped[str] = mapped_column(String(64), default="")
    created_at: Mapped[float] = mapped_column(Float)
    run: Mapped[int] = mapped_column(Integer, default=0)
    run_started_at: Mapped[float | None] = mapped_column(Float)
    next_run_at: Mapped[float | None] = mapped_column(Float)
    ended_at: Mapped[float | None] = mapped_column(Float)
    certificates: Mapped[list[Any]] = mapped_column(Compressed, default=list)
    held: Mapped[list[str]] = mapped_column(JSON, default=list)
    ending: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class ExperimentRow(Base):
    """An experiment: what was tried, and what came of it.

    ``active_class`` is the request class for as long as anything may still be injected, then NULL:
    being unique, it lets no two experiments run on one class, whoever arms them.
    ``members_charged`` is what the budgets count: all that were reserved, until the edges have
    said how many they used. ``draft``: of an armed one, the record it leaves if nobody ends it.
    ``tried``: the id that a finding of just its hypothesis has, by which that is found; NULL where
    a version before that put it on record. ``open_before``: how many hypotheses of its campaign
    were open when it was proposed; NULL likewise.
    """

    __tablename__ = "experiment"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    campaign_id: Mapped[str] = mapped_column(String(32))
    run: Mapped[int] = mapped_column(Integer, default=0)
    request_class: Mapped[str] = mapped_column(Text)
    active_class: Mapped[str | None] = mapped_column(Text, unique=True)
    purpose: Mapped[str] = mapped_column(String(16))
    hypothesis: Mapped[list[str]] = mapped_column(JSON)
    tried: Mapped[str | None] = mapped_column(String(16), default=_tried)
    faults: Mapped[list[str]] = mapped_column(JSON)
    state: Mapped[str] = mapped_column(String(16))
    verdict: Mapped[str | None] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(Text, default="")
    risk: Mapped[float] = mapped_column(Float, default=0.0)
    approved_by: Mapped[str | None] = mapped_column(String(64))
    level: Mapped[float | None] = mapped_column(Float)
    allocation: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    members_reserved: Mapped[int] = mapped_column(Integer, default=0)
    members_charged: Mapped[int] = mapped_column(Integer, default=0)
    members_hurt: Mapped[int] = mapped_column(Integer, default=0)
    created_at: Mapped[float] = mapped_column(Float)
    armed_at: Mapped[float | None] = mapped_column(Float, index=True)
    lease_until: Mapped[float | None] = mapped_column(Float)
    ended_at: Mapped[float | None] = mapped_column(Float, index=True)
    comparison: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    lesson: Mapped[dict[str, Any] | None] = mapped_column(Compressed)
    draft: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    open_before: Mapped[int | None] = mapped_column(Integer)
    __table_args__ = (
        Index("experiment_by_class", "request_class", "ended_at"),
        Index("experiment_by_run", "campaign_id", "run", "created_at"),
        # Lists, newest first: all, and cut down to one of something.
        Index("experiment_by_creation", "created_at"),
        Index("experiment_by_campaign", "campaign_id", "created_at"),
        Index("experiment_by_state", "state", "created_at"),
        Index("experiment_by_verdict", "verdict", "created_at"),
        Index("experiment_of_class", "request_class", "created_at"),
        Index("experiment_by_tried", "tried", "verdict", "ended_at"),
    )


class _Tally:
    """How many experiments of a campaign, with this purpose, ended with this verdict (empty: with
    none); how many of them had been ``armed``, and how many members they ``hurt``."""

    campaign_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    purpose: Mapped[str] = mapped_column(String(16), primary_key=True)
    verdict: Mapped[str] = mapped_column(String(16), primary_key=True)
    ended: Mapped[int] = mapped_column(Integer)
    armed: Mapped[int] = mapped_column(Integer)
    hurt: Mapped[int] = mapped_column(BigInteger)


class TallyRow(_Tally, Base):
    """A tally of all experiments there ever were."""

    __tablename__ = "tally"


class PrunedTallyRow(_Tally, Base):
    """The same of those whose rows were dropped by age: part of the other."""

    __tablename__ = "pruned_tally"


class SnapshotRow(Base):
    """What was learned of a class before a moment. ``campaign_id``: of one campaign, in runs before
    ``run``; empty: of all, from experiments that had ended ``until`` then. ``experience``: of all
    versions of the class; the ``document``: of this one."""

    __tablename__ = "balance"
    campaign_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    request_class: Mapped[str] = mapped_column(Text, primary_key=True)
    version: Mapped[int] = mapped_column(Integer)
    run: Mapped[int] = mapped_column(Integer)
    until: Mapped[float] = mapped_column(Float)
    experience: Mapped[dict[str, Any]] = mapped_column(JSON)
    document: Mapped[dict[str, Any]] = mapped_column(Compressed)


class ClassRow(Base):
    """A request class as it was last learned: its evidence from traffic nobody disturbed."""

    __tablename__ = "request_class"
    name: Mapped[str] = mapped_column(Text, primary_key=True)
    version: Mapped[int] = mapped_column(Integer, default=1)
    document: Mapped[dict[str, Any]] = mapped_column(JSON)
    updated_at: Mapped[float] = mapped_column(Float)


class FindingRow(Base):
    """A minimal failing set of one request class. Its id is made of just that.

    ``suspected`` until an experiment of its own has confirmed it, then ``open``; ``fixed`` when
    it was survived later on, ``regressed`` when it hurt once more; ``refuted`` when the
    confirmation did not hurt; ``superseded`` when a part of it was found to hurt; ``killed`` when
    a process seems to have died of it; ``acknowledged`` when somebody said so, with what is to be
    done as the ``note``.
    ``tracker_url`` is where people work on it.
    """

    __tablename__ = "finding"
    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    request_class: Mapped[str] = mapped_column(Text, index=True)
    faults: Mapped[list[str]] = mapped_column(JSON)
    state: Mapped[str] = mapped_column(String(16), index=True)
    found_at: Mapped[float] = mapped_column(Float)
    verified_at: Mapped[float | None] = mapped_column(Float)
    campaign_id: Mapped[str] = mapped_column(String(32))
    experiment_id: Mapped[str] = mapped_column(String(32))
    traces: Mapped[list[str]] = mapped_column(JSON, default=list)
    note: Mapped[str | None] = mapped_column(Text)
    tracker_url: Mapped[str | None] = mapped_column(Text)


class MaintenanceRow(Base):
    """A maintenance window."""

    __tablename__ = "maintenance"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    owner: Mapped[str] = mapped_column(String(64))
    reason: Mapped[str] = mapped_column(Text)
    down: Mapped[list[str]] = mapped_column(JSON)
    opened_at: Mapped[float] = mapped_column(Float)
    until: Mapped[float] = mapped_column(Float, index=True)
    closed_at: Mapped[float | None] = mapped_column(Float)


class ReplayRow(Base):
    """What came of a replay: one version measured, or two compared."""

    __tablename__ = "replay"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    kept_at: Mapped[float] = mapped_column(Float, index=True)
    kept_by: Mapped[str] = mapped_column(String(64))
    verdict: Mapped[str | None] = mapped_column(String(16))
    document: Mapped[dict[str, Any]] = mapped_column(JSON)


class TokenRow(Base):
    """A bearer token: only its SHA-256 digest is kept."""

    __tablename__ = "token"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    role: Mapped[str] = mapped_column(String(16))
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    created_by: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[float] = mapped_column(Float)
    expires_at: Mapped[float | None] = mapped_column(Float)
    revoked: Mapped[bool] = mapped_column(Boolean, default=False)


class NamespaceRow(Base):
    """A namespace beside the default one; what belongs to it is in a store of its own.

    The limits: what it may take of those of all; NULL: as much as there is.
    """

    __tablename__ = "namespace"
    name: Mapped[str] = mapped_column(String(30), primary_key=True)
    created_by: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[float] = mapped_column(Float)
    max_concurrent: Mapped[int | None] = mapped_column(Integer)
    members_per_hour: Mapped[int | None] = mapped_column(Integer)
    members_per_day: Mapped[int | None] = mapped_column(Integer)


class IdempotencyRow(Base):
    """The answer to a request that carried an idempotency key, so that a repetition gets the same.

    ``status`` is NULL while the first request is still being worked on.
    """

    __tablename__ = "idempotency"
    caller: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(128), primary_key=True)
    request: Mapped[str] = mapped_column(String(64))
    at: Mapped[float] = mapped_column(Float, index=True)
    status: Mapped[int | None] = mapped_column(Integer)
    answer: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class NotificationRow(Base):
    """Something people are to be told: written with the change itself, delivered afterwards.

    ``dealt_at``: when each target was given a delivery of its own. ``error``: of notifications
    given up before targets had deliveries of their own. The names in the database stay as they
    were, so that processes of an older version can go on writing until they are replaced.
    """

    __tablename__ = "notification"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    at: Mapped[float] = mapped_column(Float)
    event: Mapped[str] = mapped_column(String(32))
    document: Mapped[dict[str, Any]] = mapped_column(JSON)
    dealt_at: Mapped[float | None] = mapped_column("delivered_at", Float, index=True)
    error: Mapped[str | None] = mapped_column(Text)


class DeliveryRow(Base):
    """One notification on its way to one target.

    ``target``: the target's name, made of a hash of its URL, which may be a secret. ``ended_at``:
    when it was taken, or given up with an ``error``; NULL while it waits.
    """

    __tablename__ = "delivery"
    notification_id: Mapped[int] = mapped_column(Integer, primary_key=True)
    target: Mapped[str] = mapped_column(String(64), primary_key=True)
    ended_at: Mapped[float | None] = mapped_column(Float)
    error: Mapped[str | None] = mapped_column(Text)
    __table_args__ = (Index("delivery_by_end", "ended_at", "target"),)


class AuditRow(Base):
    """Who did what, to what, why, and when. Written in the transaction of the change itself."""

    __tablename__ = "audit"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    at: Mapped[float] = mapped_column(Float)
    who: Mapped[str] = mapped_column(String(64))
    what: Mapped[str] = mapped_column(String(64))
    subject: Mapped[str] = mapped_column(String(64), default="")
    why: Mapped[str] = mapped_column(Text, default="")
    __table_args__ = (Index("audit_by_time", "at"), Index("audit_by_subject", "subject", "id"))


class FlagRow(Base):
    """A switch that must survive a restart: ``halted``; and why the chain of runs is not signed any
    more, as people were told last (``unsigned``). ``arming`` is only ever locked."""

    __tablename__ = "flag"
    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    value: Mapped[dict[str, Any]] = mapped_column(JSON)


class RunRow(Base):
    """What a run left behind for good, and its place in the chain of all runs.

    ``leaf``: its place, from 0 on, without a gap. ``number``: which run of its class version it is.
    ``document``: the record as it was hashed, byte for byte; empty where it was dropped by age, and
    then ``remains`` is the key of what it came to. ``nodes``: hashes of the nodes of the
    Merkle tree that it completes, from itself upwards.
    """

    __tablename__ = "run_record"
    leaf: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    experiment_id: Mapped[str] = mapped_column(String(32), unique=True)
    request_class: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(Integer)
    number: Mapped[int] = mapped_column(Integer)
    document: Mapped[str] = mapped_column(Text)
    nodes: Mapped[str] = mapped_column(Text)
    remains: Mapped[str | None] = mapped_column(Text)
    __table_args__ = (
        Index("run_record_by_class", "request_class", "version", "number", unique=True),
    )


class RemainsRow(Base):
    """What runs came to whose records were dropped by age: verdict, what was tried, what fired.
    Many came to just the same, so each is written down once. ``key``: made of the document."""

    __tablename__ = "remains"
    key: Mapped[str] = mapped_column(String(32), primary_key=True)
    document: Mapped[str] = mapped_column(Text)


class CheckpointRow(Base):
    """What was signed of the runs of a class version whose records were dropped by age."""

    __tablename__ = "checkpoint"
    request_class: Mapped[str] = mapped_column(Text, primary_key=True)
    version: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    document: Mapped[str] = mapped_column(Text)


class HeadRow(Base):
    """The head of that tree, signed last when a run ended. There is one row; locking it orders
    those who append."""

    __tablename__ = "tree_head"
    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    document: Mapped[str] = mapped_column(Text)


class CertificateRow(Base):
    """The leaf of a certificate in the tree over all certificates. ``signed_with``: what its hash
    is made of beside the certificate itself, as JSON."""

    __tablename__ = "certificate_leaf"
    place: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    campaign_id: Mapped[str] = mapped_column(String(32))
    request_class: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(Integer)
    signed_with: Mapped[str] = mapped_column(Text)
    hashed: Mapped[str] = mapped_column(String(64))
    __table_args__ = (
        Index("certificate_leaf_by_class", "campaign_id", "request_class", unique=True),
    )


class RunCountRow(Base):
    """How many runs there are of a class version. ``place``: its leaf in the tree over all of these
    counts, from 0 on, as class versions came."""

    __tablename__ = "run_count"
    place: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    request_class: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(Integer)
    runs: Mapped[int] = mapped_column(Integer)
    __table_args__ = (Index("run_count_by_class", "request_class", "version", unique=True),)


class CountNodeRow(Base):
    """A node of that tree: its hash, by level and place. The leaves are on level 0."""

    __tablename__ = "run_count_node"
    level: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    place: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    hashed: Mapped[str] = mapped_column(String(64))


class InjectorRow(Base):
    """What injectors have reported of the calls of one service, and what has fired there."""

    __tablename__ = "injector"
    caller: Mapped[str] = mapped_column(String(255), primary_key=True)
    document: Mapped[dict[str, Any]] = mapped_column(JSON)


class PositionRow(Base):
    """How far a partition of a stream has been taken in: ``next_offset`` is the first that may not
    have been. ``read_from``, not above it, is where reading has to begin so that what comes twice
    is recognised."""

    __tablename__ = "position"
    topic: Mapped[str] = mapped_column(String(255), primary_key=True)
    partition: Mapped[int] = mapped_column(Integer, primary_key=True)
    next_offset: Mapped[int] = mapped_column(BigInteger)
    read_from: Mapped[int] = mapped_column(BigInteger)
