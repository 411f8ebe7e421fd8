"""The tables. Times are Unix seconds; documents are JSON."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, Float, Index, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """The root of all tables."""


class CampaignRow(Base):
    """A campaign and its settings."""

    __tablename__ = "campaign"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    state: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(Text, default="")
    settings: Mapped[dict[str, Any]] = mapped_column(JSON)
    started_at: Mapped[float] = mapped_column(Float)
    certificates: Mapped[list[Any]] = mapped_column(JSON, default=list)


class ExperimentRow(Base):
    """An experiment: what was tried, and what came of it."""

    __tablename__ = "experiment"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    campaign_id: Mapped[str] = mapped_column(String(32), index=True)
    request_class: Mapped[str] = mapped_column(Text)
    hypothesis: Mapped[list[str]] = mapped_column(JSON)
    faults: Mapped[list[str]] = mapped_column(JSON)
    state: Mapped[str] = mapped_column(String(16))
    verdict: Mapped[str | None] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(Text, default="")
    armed_at: Mapped[float | None] = mapped_column(Float)
    ended_at: Mapped[float | None] = mapped_column(Float)
    counts: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)


class FindingRow(Base):
    """A minimal failing set of one request class. Its id is made of just that."""

    __tablename__ = "finding"
    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    request_class: Mapped[str] = mapped_column(Text)
    faults: Mapped[list[str]] = mapped_column(JSON)
    found_at: Mapped[float] = mapped_column(Float)
    campaign_id: Mapped[str] = mapped_column(String(32))
    experiment_id: Mapped[str] = mapped_column(String(32))
    traces: Mapped[list[str]] = mapped_column(JSON, default=list)


class AuditRow(Base):
    """Who did what, to what, why, and when. Written in the transaction of the change itself."""

    __tablename__ = "audit"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    at: Mapped[float] = mapped_column(Float)
    who: Mapped[str] = mapped_column(String(64))
    what: Mapped[str] = mapped_column(String(64))
    subject: Mapped[str] = mapped_column(String(64), default="")
    why: Mapped[str] = mapped_column(Text, default="")
    __table_args__ = (Index("audit_by_time", "at"),)


class FlagRow(Base):
    """A switch that must survive a restart: ``halted``."""

    __tablename__ = "flag"
    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    value: Mapped[dict[str, Any]] = mapped_column(JSON)
