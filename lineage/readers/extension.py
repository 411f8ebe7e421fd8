"""The extension in Rust (``ldfi-native``), where it is installed: it decodes, we say what it means.

It asks once for each value that it has not seen, and gives back what is not written as everybody
writes it: then the reference reads the whole body. So both ways come to the same spans and the same
errors. It lets others run Python while it decodes; a reader is for one thread at a time, so there
are as many as threads that read at once.
"""

from __future__ import annotations

import importlib
import logging
from functools import cache, partial
from typing import Any, Final, Literal, Protocol

from ldfi.lineage.operation import Operation
from ldfi.lineage.readers.batch import Batch
from ldfi.lineage.span import Links, Span

INTERFACE: Final = 1
"""What both sides have agreed on, by number. An extension that says another is not used."""

Way = Literal["native", "python"]
_log = logging.getLogger("ldfi")
_new_span = partial(tuple.__new__, Span)


class Oracle(Protocol):
    """Says what things mean. Groups of kinds: 0 unsaid, 1 who is asked, 2 who asks."""

    def wanted(self) -> list[tuple[int, bytes, str]]:
        """List what is read: group, attribute and where identifiers may be in its value."""

    def value(self, number: int, value: str) -> tuple[str, str]:
        """Tell what a value of the attribute at that place in the list says."""

    def attribute(self, group: int, blob: bytes) -> tuple[str, str] | None:
        """Tell what an attribute says, however it is written; None for nothing."""

    def service(self, resource: bytes) -> str:
        """Name the service that a resource is."""

    def operation(
        self,
        service: str,
        name: bytes,
        kind: int,
        status: bytes,
        fields: tuple[tuple[str, str], ...],
    ) -> tuple[Operation, Operation | None]:
        """Make the operation of a span, and the same with an exception, if it matters."""

    def links(self, blobs: list[bytes]) -> Links:
        """Read what a span points to."""


def way() -> Way:
    """Tell by whom OTLP is decoded in this process."""
    return "python" if _module() is None else "native"


class Extension:
    """Readers that nobody uses just now, and the oracle that all of them ask."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._idle: list[Any] = []

    def read(self, body: bytes) -> Batch | None:
        """Read a body; None where the reference is to do it."""
        module = _module()
        if module is None:
            return None
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = module.Reader(self._oracle.wanted(), self._oracle)
        found = reader.read(body)
        self._idle.append(reader)  # one that failed is not used again
        if found is None:
            return None
        rows, rejected = found
        return Batch(list(map(_new_span, rows)), rejected)


@cache
def _module() -> Any:
    """Load the extension; None where it is not installed, or is another than we know."""
    try:
        module = importlib.import_module("ldfi_native")
    except ImportError:
        return None
    if getattr(module, "INTERFACE", None) != INTERFACE:
        said = getattr(module, "__version__", "unknown")
        _log.warning("ldfi-native %s is not of this ldfi and is not used: install both alike", said)
        return None
    return module
