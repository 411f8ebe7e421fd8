"""Calls at patched clients that run in no trace at all: counted by library, and reported.

A thread that lost its context calls through a library that nobody instruments: no span tells of it,
and only the injection point beneath sees it. So does a poller's call; whose it is nobody can tell
here. Counts are told in powers of ten, for each is a pattern of the report that is remembered.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Final

from ldfi.fit import reporting

MOST: Final = 1_000_000
"""Calls by one library beyond which nothing more is said."""

_calls: Final[Counter[str]] = Counter()
_OURS: Final = "ldfi.fit.clients."


def note() -> None:
    """Count a call of the client whose wrapper asks whether it is armed."""
    frame = sys._getframe(2)  # its caller's caller: what asks is called by the wrapper
    module = str(frame.f_globals.get("__name__", ""))
    if not module.startswith(_OURS):
        return
    library = module.removeprefix(_OURS).partition(".")[0]
    _calls[library] += 1
    count = _calls[library]
    if count <= MOST and str(count).rstrip("0") == "1":
        reporting.bare(library, count)
