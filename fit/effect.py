"""An effect: what a fault does to one call, ready to be carried out."""

from __future__ import annotations

from typing import NamedTuple


class Effect(NamedTuple):
    """Hang for ``seconds``, then fail with ``failure``; None lets the call through.

    A failure that is an exception is raised, unless it is to be ``returned``; anything else is
    returned in place of the answer. ``slow``: the call is made, and the body of its answer comes
    over ``seconds``; the failure then is the :class:`ldfi.fit.slow.Slow` that is asked about it.
    """

    seconds: float = 0.0
    failure: object | None = None
    returned: bool = False
    slow: bool = False
