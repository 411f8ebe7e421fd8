"""Which headers, cookies and entries of the baggage are features: those that somebody has chosen.

``FIT_FEATURES`` names them, the same at the edge and where traces are read::

    FIT_FEATURES=header.x-device-type,header.x-plan,cookie.ab,baggage.tenant

Low cardinality only: each value may become a request class, and stand in its name. What carries
credentials cannot be chosen.
"""

from __future__ import annotations

import logging
import os
import re
from functools import lru_cache
from typing import Final

VARIABLE: Final = "FIT_FEATURES"
DEFAULT: Final = "header.x-device-type"
KINDS: Final = frozenset({"header", "cookie", "baggage"})
MOST: Final = 20
"""Features that can be chosen; more of them would be a user, not a kind of request."""

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
_SECRET = re.compile(r"auth|cookie|token|secret|session|passw|api-?key|credential", re.IGNORECASE)
_log = logging.getLogger("fit")


@lru_cache(maxsize=1)
def chosen() -> frozenset[str]:
    """Read the features chosen in the environment, once for the life of the process."""
    return parse(os.environ.get(VARIABLE, DEFAULT))


@lru_cache(maxsize=1)
def told() -> frozenset[str]:
    """Name the features that an edge writes on spans: none, where the environment chooses none."""
    return chosen() if VARIABLE in os.environ else frozenset()


def parse(text: str) -> frozenset[str]:
    """Read a list such as ``header.x-plan,cookie.ab``. What cannot be chosen is left out, with a
    warning."""
    found = set()
    for each in filter(None, map(str.strip, text.split(","))):
        kind, _, name = each.partition(".")
        if kind not in KINDS or not _NAME.fullmatch(name) or _SECRET.search(name):
            _log.warning("%s names %r, which is not a feature to choose", VARIABLE, each[:80])
        else:
            found.add(f"{kind}.{name.lower() if kind == 'header' else name}")
    return frozenset(sorted(found)[:MOST])
