"""What ``fit`` writes on spans: the proof that a fault fired, and the identity of a point.

``lineage`` reads these, and nothing else, to know what an experiment did to a request.
"""

from __future__ import annotations

from typing import Final

POINT: Final = "fit.point"
"""On the span of a call that a fault was meant for, and on spans of :class:`fit.point`: the name
of its injection point. Every other call has the same name by rule
(:mod:`ldfi.fit.protocol.points`)."""

FIRED: Final = "fit.fired"
"""On the span of a call in the treatment arm: the kind of fault that was injected here."""

WOULD_FIRE: Final = "fit.would_fire"
"""On the span of a call in the control arm: the kind of fault that would have been injected."""

LET_THROUGH: Final = "fit.let_through"
"""On the span of a call that came after the first few that a fault was meant for. Where the
client's own retry made it, the same span also says that the fault fired."""

OUTLIVED: Final = "fit.outlived"
"""On the span of a call that a fault was meant for and that began when its request had ended: it
was let through, in either arm."""

EXPIRED: Final = "fit.expired"
"""On the span of a call that a fault was meant for and that began when the failure context had run
out: it was let through, in either arm."""

EXPERIMENT: Final = "fit.experiment"
"""On the first span of each service that a request under experiment enters: the experiment."""

ARM: Final = "fit.arm"
"""Beside ``fit.experiment``: ``treatment`` or ``control``."""

CALLS: Final = "fit.calls"
"""On a span of a request under experiment: how many spans of calls were begun right inside it. So
many are to come, and a trace without them has a hole."""

EDGE: Final = "fit.edge"
"""On the span of a request that came in at an edge: whoever sent it, no service of ours has."""

AGAIN: Final = "fit.again"
"""On the span of a request under experiment that came in at an edge: it is not the first that this
edge has stamped for its device. What counts is the first, which may still be under way."""

FEATURE: Final = "fit.feature."
"""On the span of a request that came in at an edge, followed by a feature's name: the value of a
header, a cookie or an entry of the baggage that was chosen
(:mod:`ldfi.fit.protocol.chosen_features`)."""

REACH: Final = "fit.reach"
"""On a span by the same name, which is a trace of its own and no request: what an injector can
reach (:mod:`ldfi.fit.protocol.reach`)."""

MARK: Final = "fit.mark"
"""On a span by the same name, below the call by which a request under experiment came into a
process: what is about to fire, or would (:mod:`ldfi.fit.protocol.mark`). It leaves before the fault
takes effect, for that may end the process."""

EVENT: Final = "fit.fault"
"""Name of the span event that marks the instant of injection."""
