"""What ``fit`` writes on spans: the proof that a fault fired, and the identity of a point.

``lineage`` reads these, and nothing else, to know what an experiment did to a request.
"""

from __future__ import annotations

from typing import Final

POINT: Final = "fit.point"
"""On the span of a call: the name of its injection point (see :mod:`fit.points`)."""

FIRED: Final = "fit.fired"
"""On the span of a call in the treatment arm: the kind of fault that was injected here."""

WOULD_FIRE: Final = "fit.would_fire"
"""On the span of a call in the control arm: the kind of fault that would have been injected."""

EXPERIMENT: Final = "fit.experiment"
"""On the first span of each service that a request under experiment enters: the experiment."""

ARM: Final = "fit.arm"
"""Beside ``fit.experiment``: ``treatment`` or ``control``."""

EVENT: Final = "fit.fault"
"""Name of the span event that marks the instant of injection."""
