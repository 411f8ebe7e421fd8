"""The certificate of a class that was written last, and whether more is known by now.

Writing one may take seconds, so it may be done beside the event loop, of a copy
(:mod:`ldfi.experiments.control.certifier`); what was written last is shown meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ldfi.solver import Certificate


@dataclass(slots=True)
class Filing:
    """``changes``: how often what is known has changed. ``document``: what was written last, with
    the class by name; None before."""

    changes: int = 0
    document: dict[str, Any] | None = field(default=None, init=False)
    _written_at: int = field(default=-1, init=False)

    @property
    def current(self) -> bool:
        """Whether the document says all that is known."""
        return self._written_at == self.changes

    def file(self, changes: int, name: str, certificate: Certificate) -> dict[str, Any]:
        """Keep the certificate of a class that was written when so much had changed."""
        self._written_at = changes
        self.document = {"request_class": name, "certificate": certificate.data}
        return self.document

    def give_up(self, changes: int) -> None:
        """Leave the document as it is until more is learned: this could not be written."""
        self._written_at = changes
