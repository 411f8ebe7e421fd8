"""Decoding by the extension (:mod:`ldfi.lineage.machine_code`): it decodes, we say what it means.

It asks once for each value that it has not seen, and gives back what is not written as everybody
writes it: then the reference reads the whole body. So both ways come to the same spans and the same
errors. It lets others run Python while it decodes; a reader is for one thread at a time, so there
are as many as threads that read at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ldfi.lineage.machine_code import extension
from ldfi.lineage.operation import Operation
from ldfi.lineage.packed_spans import Packed, spans_of
from ldfi.lineage.readers.batch import Batch
from ldfi.lineage.span import Links

Meant = tuple[Operation, int]
"""An operation, and what the extension asks of it again and again
(:func:`ldfi.lineage.packed_spans.traits`)."""


class Oracle(Protocol):
    """Says what things mean. Groups of kinds: 0 unsaid, 1 who is asked, 2 who asks."""

    def wanted(self) -> list[tuple[int, bytes, str]]:
        """List what is read: group, attribute and where identifiers may be in its value."""

    def value(self, number: int, value: str) -> tuple[str, str]:
        """Return what a value of the attribute at that place in the list says."""

    def attribute(self, group: int, blob: bytes) -> tuple[str, str] | None:
        """Return what an attribute says, however it is written; None for nothing."""

    def service(self, resource: bytes) -> str:
        """Name the service that a resource is."""

    def operation(
        self,
        service: str,
        name: bytes,
        kind: int,
        status: bytes,
        fields: tuple[tuple[str, str], ...],
    ) -> tuple[Meant, Meant | None]:
        """Make the operation of a span, and the same with an exception, if it matters."""

    def links(self, blobs: list[bytes]) -> Links:
        """Read what a span points to."""


class Extension:
    """Readers that nobody uses just now, and the oracle that all of them ask."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._idle: list[Any] = []

    def read(self, bodies: Sequence[bytes], as_json: bool = False) -> list[Batch | None]:
        """Read bodies of OTLP as protobuf, or as JSON; None in the place of each that the reference
        is to read."""
        module = extension()
        if module is None:
            return [None] * len(bodies)
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = module.Reader(self._oracle.wanted(), self._oracle)
        try:
            found = reader.read(bodies, as_json)
        except Exception:  # noqa: BLE001 - as the reference does, span by span
            return [None] * len(
                bodies
            )  # the reference finds which span it is, and reads the others
        self._idle.append(reader)  # one that failed is not used again
        return [None if each is None else _batch(*each) for each in found]


def _batch(plain: bool, given: list[Any], rejected: int) -> Batch:
    return Batch(Packed(given) if plain else spans_of(given), rejected)
