"""What happens to experiments and findings, for other systems: the audit's entries of them.

An entry is written in the transaction of the change itself, so nothing is told that did not happen,
and nothing that happened is left out. They are written to the topic in the order of their ids, and
how far that is goes on record when the brokers have acknowledged them: after a crash some come
again. Whoever reads leaves out ids that are not above the last one.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, Final

from sqlalchemy.orm import Session

from ldfi.experiments.store import audit, positions
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.positions import Position
from ldfi.experiments.store.schema import AuditRow, ExperimentRow, FindingRow
from ldfi.experiments.streams.stream import Producer, Stream, Topics
from ldfi.experiments.telemetry import clock

_log = logging.getLogger("ldfi")

LOOK_SECONDS: Final = 0.5
AT_ONCE: Final = 200
AGAIN_SECONDS: Final = 2.0
_PLACE: Final = 0
"""There is one partition, or their order would be lost."""

_TOLD: Final = ("experiment ", "finding ")


class Events:
    """Tells what is on record and has not been told. ``db`` is fenced: one leader does this."""

    def __init__(self, stream: Stream, topics: Topics, partitions: int, db: Database) -> None:
        self._stream = stream
        self._topics = topics
        self._partitions = partitions
        self._db = db
        self._producer: Producer | None = None

    async def run(self) -> None:
        """Tell until cancelled."""
        try:
            while True:
                try:
                    looked = await asyncio.to_thread(self.tell, clock.now())
                except Exception as error:  # noqa: BLE001 - brokers and databases come back
                    _log.warning("events are not written: %s; trying again", error)
                    await asyncio.sleep(AGAIN_SECONDS)
                else:
                    await asyncio.sleep(0.0 if looked == AT_ONCE else LOOK_SECONDS)
        finally:
            if self._producer is not None:
                self._producer.close()

    def tell(self, now: float) -> int:
        """Publish the entries that are new, and record how far; returns how many entries were read.

        Raises StreamError, Deposed, and what the database raises.
        """
        topic = self._topics.events
        with self._db.read() as session:
            kept = positions.load(session, topic).get(_PLACE)
            last = kept.next_offset - 1 if kept is not None else 0
            entries = list(audit.whole(audit.after(session, last, AT_ONCE), last, now))
            told = [(e.subject, _value(session, e)) for e in entries if e.what.startswith(_TOLD)]
        if not entries:
            return 0
        for subject, value in told:
            producer = self._made()
            producer.send(topic, subject.encode(), value)
            producer.flush()  # each by itself: the next must not be there when this one is not
        following = entries[-1].id + 1
        with self._db.change(now) as change:
            positions.save(change, topic, {_PLACE: Position(following, following)})
        return len(entries)

    def _made(self) -> Producer:
        if self._producer is None:
            self._stream.ensure(self._topics.partitions(self._partitions))
            self._producer = self._stream.producer()
        return self._producer


def _value(session: Session, entry: AuditRow) -> bytes:
    """Write an entry, with what never changes about its experiment or finding."""
    document: dict[str, Any] = {
        "id": entry.id,
        "at": entry.at,
        "what": entry.what,
        "subject": entry.subject,
        "who": entry.who,
        "why": entry.why,
    }
    row: ExperimentRow | FindingRow | None
    if entry.what.startswith("experiment "):
        row = session.get(ExperimentRow, entry.subject)
    else:
        row = session.get(FindingRow, entry.subject)
    if row is not None:
        document |= {"request_class": row.request_class, "faults": row.faults}
        document |= {"campaign": row.campaign_id}
    return json.dumps(document, separators=(",", ":")).encode()
