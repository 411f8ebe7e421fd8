"""Contexts that may come in from outside: an engineer's own, for the engineer's own device.

What the edge stamps stays inside, and whoever catches such a context can do nothing with it at the
edge. To replay a finding, an engineer who holds the key signs a context in the name of one device
(:func:`scenario_of` is its experiment); the edge lets it in from that device alone.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Final

from ldfi.fit.protocol.context import FailureContext

PREFIX: Final = "s-"


def scenario_of(device: str) -> str:
    """Name the experiment that stands for replaying on this device."""
    digest = sha256(b"ldfi scenario\n" + device.encode("utf-8", "replace"))
    return PREFIX + digest.hexdigest()[:24]


def admits(context: FailureContext | None, device: str) -> bool:
    """Return whether a context from outside, verified, may come in with a request of this
    device."""
    if context is None or not device:
        return False
    return hmac.compare_digest(context.experiment.encode(), scenario_of(device).encode())
