"""The kill switch, and what else others may have changed on record: the maintenance windows."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.scheduler.arming import Arming
from ldfi.experiments.scheduler.record import Record
from ldfi.experiments.scheduler.restore import restored
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.experiments.scheduler.shared_state import State, new_id
from ldfi.experiments.store import campaigns, experiments, findings, halts, maintenance
from ldfi.experiments.store.database import Database
from ldfi.experiments.telemetry.clock import Jump


class HaltSwitch:
    """Halts and resumes, and follows what is on record. Raises what the database raises."""

    def __init__(
        self,
        db: Database,
        board: RulesBoard,
        catalogue: Catalogue,
        record: Record,
        arming: Arming,
        state: State,
    ) -> None:
        self._db = db
        self._board = board
        self._catalogue = catalogue
        self._record = record
        self._arming = arming
        self._state = state
        self._told: str | None = None
        self._global_halt: str | None = None

    def halt(self, reason: str, who: str, now: float) -> None:
        """Disarm everything, at once, and let nothing start until :meth:`resume`.

        It holds in this process even when it cannot be put on record; that is tried again then.
        """
        self._board.clear()
        self._state.halted_here = halts.both(self._state.halted_here, reason)
        try:
            self._record.halt(reason, who, now)
        finally:
            self._abort_all(reason, now)

    def heed(self, reason: str) -> None:
        """Disarm everything at once, for a halt that is being put on record.

        This waits for nothing, the database included, so that edges are told without delay. What
        else there is to be done is left to the next :meth:`sync`.
        """
        self._board.clear()
        self._told = halts.both(self._told, reason)
        self._state.halted_here = halts.both(self._state.halted_here, reason)

    def owe(self, reason: str, who: str) -> None:
        """Put a heeded halt on record that could not be written."""
        self._record.owe_halt(reason, who)

    def disarm(self, reason: str, now: float, jumps: Iterable[Jump]) -> None:
        """Disarm everything, at once, for the machine's clock was set. What is to be tried may be
        armed again."""
        self._board.clear()
        with self._db.change(now) as change:
            halts.note_jumps(change, jumps)
            change.audit("disarmed", why=reason)
        for campaign in self._state.campaigns.values():
            self._arming.abort_all(campaign, reason, now)

    def resume(self, who: str, now: float) -> None:
        """Let experiments start again."""
        self._record.resume(who, now)
        if self._told is not None:  # heeded, and resumed before the next sync
            self._abort_all(self._told, now)
        self._state.halted_here = self._told = None

    def look_up(self, now: float) -> None:
        """Disarm everything where all namespaces have been halted since this was asked last."""
        global_halt = self._state.global_controls.halted()
        if global_halt is not None and global_halt != self._global_halt:
            self._board.clear()
            self._abort_all(global_halt, now)
        self._global_halt = global_halt

    def sync(self, now: float) -> None:
        """Apply the record: a halt, the windows, and campaigns that are new here.

        What is armed and must not be any more is disarmed.
        """
        self._record.write_halt(now)
        with self._db.read() as session:
            on_record = halts.halted(session)
            self._state.windows = maintenance.open_windows(session, now)
            if self._state.unread:
                self._read_campaigns(session)
        self._state.unread = False
        halted = self._told if on_record is None else on_record
        if halted is not None and (self._told is not None or self._state.halted_here is None):
            self._board.clear()
            self._abort_all(halted, now)
        if on_record is not None:
            self._told = None
        self._state.halted_here = halted
        for campaign, experiment in self._state.active():
            self._arming.guard(campaign, experiment, now)

    def _read_campaigns(self, session: Session) -> None:
        here, fdr = self._state.campaigns, self._state.fdr
        self._state.closed |= findings.closed(session)
        if not fdr.tested:
            fdr.tested, fdr.discoveries = experiments.levels(session)
        for row in campaigns.live(session):
            if row.id not in here:
                asked = campaigns.definition_from_json(row.definition)
                protected = self._state.limits.protected_points
                shared = fdr, self._state.injectors, self._state.closed
                empty = Campaign(row.id, asked, new_id, protected, *shared)
                here[row.id] = restored(session, row, self._catalogue, empty)

    def _abort_all(self, reason: str, now: float) -> None:
        for campaign in self._state.campaigns.values():
            self._arming.abort_all(campaign, f"halted: {reason}", now)
