"""Request classes appear, change and go: that is kept on record, and the campaigns are told."""

from __future__ import annotations

from collections import deque

from ldfi.experiments.domain.traffic.catalogue import Catalogue, ClassChange
from ldfi.experiments.scheduler.arming import Arming
from ldfi.experiments.scheduler.record import Record
from ldfi.experiments.scheduler.shared_state import State
from ldfi.experiments.store import classes, notifications
from ldfi.experiments.store.database import Database

SAVE_SECONDS = 600.0
"""How often what the traffic has shown is put on record, besides whenever it matters."""

CHANGES_AT_ONCE = 10
"""Classes that appeared, changed or went, put on record in one pass, in their order: hundreds
appear at once where a service begins to listen, and each takes a millisecond."""

SAVED_AT_ONCE = 5
"""Classes put on record in one step: all at once would hold up everything else."""


class DriftWatch:
    """Follows the catalogue. A change is kept until it is on record, and then until all campaigns
    know of it. Raises what the database raises."""

    def __init__(
        self,
        db: Database,
        catalogue: Catalogue,
        record: Record,
        arming: Arming,
        state: State,
        now: float,
    ) -> None:
        self._db = db
        self._catalogue = catalogue
        self._record = record
        self._arming = arming
        self._state = state
        self._changes: list[ClassChange] = []
        self._to_follow: deque[ClassChange] = deque()
        self._unsaved: deque[str] = deque()
        self._next_save = now + SAVE_SECONDS

    def follow(self, now: float) -> None:
        """Put classes that appeared, changed or expired on record, and tell the campaigns."""
        self._changes += self._catalogue.changes()
        if self._changes:
            self._record_changes(now)
        while self._to_follow:
            self._tell(self._to_follow[0], now)  # which does no harm when it is done twice
            self._to_follow.popleft()

    def save_some(self, now: float) -> None:
        """Save the traffic's evidence when it is due, a few classes at a time."""
        if now >= self._next_save:
            self._next_save = now + SAVE_SECONDS
            self._unsaved = deque(self._catalogue.classes)
        self._save(now, SAVED_AT_ONCE)

    def save_all(self, now: float) -> None:
        """Save all of the traffic's evidence."""
        self._unsaved = deque(self._catalogue.classes)
        self._save(now, len(self._unsaved))

    def _record_changes(self, now: float) -> None:
        some = self._changes[:CHANGES_AT_ONCE]
        with self._db.change(now) as change:
            for each in some:
                known = each.known
                change.audit(f"class {each.kind}", known.name[:64], _why(each))
                if each.kind == "expired":
                    classes.remove(change, known.name)
                else:
                    classes.save(change, known.name, known.version, known.to_json())
                if each.kind == "changed":
                    title = f"{known.name}: its lineage changed"
                    notifications.put(change, "class-drifted", title, _why(each))
        self._to_follow.extend(some)
        del self._changes[: len(some)]

    def _tell(self, changed: ClassChange, now: float) -> None:
        for campaign in self._state.campaigns.values():
            held = len(campaign.held)
            must_end = campaign.follow(changed)
            if len(campaign.held) != held:
                self._record.owe(campaign)
            if must_end:
                experiment = campaign.running[changed.known.name]
                reason = f"the class {changed.kind}: {_why(changed)}"
                self._arming.abort(campaign, experiment, reason, now)
        self._record.write(now)

    def _save(self, now: float, most: int) -> None:
        names = [self._unsaved.popleft() for _ in range(min(most, len(self._unsaved)))]
        if not names:
            return
        with self._db.change(now) as change:
            for name in names:
                known = self._catalogue.classes.get(name)
                if known is not None:
                    classes.save(change, name, known.version, known.to_json())


def _why(changed: ClassChange) -> str:
    """Return in words what changed in a class's lineage."""
    words = [
        f"{verb} {', '.join(sorted(points))}"
        for verb, points in (("came:", changed.appeared), ("went:", changed.vanished))
        if points
    ]
    return "; ".join(words) or "its requests are divided differently now"
