"""The certificate of a class that was written last, and whether more is known by now.

Writing one may take seconds, so it may be done beside the event loop, of a copy
(:mod:`ldfi.experiments.scheduler.scheduler`); what was written last is shown meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ldfi.lineage.unseen_calls import Unseen
from ldfi.solver import Certificate


@dataclass(slots=True)
class Filing:
    """``changes``: how often what is known has changed. ``document``: what was written last, with
    the class by name; None before."""

    changes: int = 0
    document: dict[str, Any] | None = field(default=None, init=False)
    _written_at: int = field(default=-1, init=False)
    _unseen: tuple[object, ...] | None = field(default=None, init=False)

    @property
    def current(self) -> bool:
        """Return whether the document says all that is known."""
        return self._written_at == self.changes

    def look(self, unseen: Unseen) -> None:
        """Note the share that cannot be seen of the class; a changed figure makes a new
        certificate."""
        gaps = sorted((gap.why, gap.point, gap.service, gap.sure) for gap in unseen.gaps)
        known = (*gaps, f"{unseen.at_most:.1g}", unseen.calls > 0)
        if known != self._unseen:
            self._unseen = known
            self.changes += 1

    def file(
        self, changes: int, name: str, certificate: Certificate, unseen: dict[str, Any]
    ) -> dict[str, Any]:
        """Keep the certificate of a class. ``changes``: the state it was written at; ``unseen``:
        the share it states as not visible."""
        certificate.data["unseen"] = unseen
        self._written_at = changes
        self.document = {"request_class": name, "certificate": certificate.data}
        return self.document

    def give_up(self, changes: int) -> None:
        """Leave the document as it is until more is learned: this could not be written."""
        self._written_at = changes
