"""Trace files: compressed or not, one document or one a line."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from lineage.errors import UnreadableTraces
from lineage.readers.otlp_json import decode_json
from lineage.span import Span


def read_file(path: Path) -> Iterator[Span]:
    """The spans of a file of OTLP-JSON lines, gzipped or not.

    Raises UnreadableTraces for a file that is none, OSError for one that cannot be opened.
    """
    with path.open("rb") as start:
        zipped = start.read(2) == b"\x1f\x8b"
    with gzip.open(path) if zipped else path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield from decode_json(line).spans
                except UnreadableTraces as error:
                    raise UnreadableTraces(f"{path}:{number}: {error.reason}") from error
