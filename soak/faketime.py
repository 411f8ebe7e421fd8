"""A wall clock of its own for a process, which a file sets: by libfaketime, never the machine's."""

from __future__ import annotations

import ctypes.util
import os
from pathlib import Path

from deploy.stack.missing import Missing

SLEEPING = Path(__file__).parent / "sleeping"
"""What such a process imports first, for it could not sleep otherwise."""


def variables(offset: Path, *, at_once: bool = True) -> dict[str, str]:
    """Return the variables of a process whose wall clock is off by what ``offset`` says, in
    seconds, whenever that is written. Time that nobody sets stays as it is. Raises Missing.

    ``at_once``: it is read again for each look at the clock, which costs a busy process a good part
    of its time; else within a second.
    """
    offset.write_text("+0")
    return {
        "LD_PRELOAD": _library(),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_NO_CACHE": "1" if at_once else "0",
        "FAKETIME_CACHE_DURATION": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(SLEEPING), os.environ.get("PYTHONPATH")])),
    }


def _library() -> str:
    given = os.environ.get("FAKETIME_LIBRARY") or ctypes.util.find_library("faketime")
    for found in [given, *Path("/usr/lib").glob("*/faketime/libfaketime.so.1")]:
        if found:
            return str(found)
    raise Missing("no libfaketime: install your system's package (libfaketime)")
