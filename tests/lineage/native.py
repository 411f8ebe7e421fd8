"""The extension in Rust, for tests: skipped where it is not installed, and failed there in CI; and
what is read compared by what it says."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.operation import Operation
from ldfi.lineage.readers.batch import Batch
from tests.kit import needs

BODIES = int(os.environ.get("LDFI_BODIES", "300"))
"""Drawn in each test; ten thousand now and then."""

DATA = Path(__file__).parents[1] / "data"
EXAMPLES = Path(__file__).parents[2] / "examples" / "traces"
FILES = sorted({*DATA.glob("*.otlp.jsonl.gz"), *EXAMPLES.glob("*.otlp.jsonl.gz")})
"""Lines of the Collector."""


def required() -> None:
    """Skip the tests of a module where there is no extension."""
    if importlib.util.find_spec("ldfi_native") is None:
        needs.lacking("ldfi-native is not installed: `make native` builds it")


def told(batch: Batch | None) -> object:
    """Return what a batch says: its operations, too, by what they say."""
    if batch is None:
        return None
    names = [field.name for field in fields(Operation)]
    named = [[getattr(span.operation, name) for name in names] for span in batch.spans]
    return ([tuple(span._replace(operation=None)) for span in batch.spans], named, batch.rejected)  # type: ignore[arg-type]


def outcome(decode: Callable[[bytes], Batch], body: bytes) -> object:
    """Return what is read of a body, or why it cannot be."""
    try:
        return told(decode(body))
    except UnreadableTraces as error:
        return str(error)
