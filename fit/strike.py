"""A strike: what a fault does to one call, ready to be carried out."""

from __future__ import annotations

from typing import NamedTuple


class Strike(NamedTuple):
    """Hang for ``seconds``, then fail with ``failure``; None lets the call through.

    A failure that is an exception is raised, unless it is to be ``returned``; anything else is
    returned in place of the answer.
    """

    seconds: float = 0.0
    failure: object | None = None
    returned: bool = False
