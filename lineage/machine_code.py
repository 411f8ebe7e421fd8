"""The extension in machine code (``ldfi-native``, lineage/native), where it is installed.

It does, in Rust, what needs no knowledge of what spans mean: decoding
(:mod:`ldfi.lineage.readers.rust`) and recognising whole traces (:mod:`ldfi.lineage.packed_spans`).
"""

from __future__ import annotations

import importlib
import logging
from functools import cache
from typing import Any, Final, Literal

INTERFACE: Final = 5
"""What both sides have agreed on, by number. An extension that says another is not used."""

Way = Literal["native", "python"]
_log = logging.getLogger("ldfi")


@cache
def extension() -> Any:
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


def way() -> Way:
    """Return by whom OTLP is decoded in this process."""
    return "python" if extension() is None else "native"
