"""Tools for the tests of whoever uses ldfi; our own tests use the same ones.

    with ldfi.testing.faults("error@shop>http:GET:ratings/titles/*"):
        answer = client.get("/items/17")        # raises NotFired where the fault does not fire

    with ldfi.testing.ControlPlane() as plane:  # what an edge asks for its rules
        plane.arm("error@shop>http:GET:ratings/titles/*", on="GET /items/17")

These need what ``fit`` needs and nothing else. :mod:`ldfi.testing.world`, the whole service on a
clock that the test moves, and :mod:`ldfi.testing.live_service`, the same over a socket, need the
extra ``ldfi[service]`` and are imported by name.
"""

from ldfi.testing.control_plane import ControlPlane, Poll
from ldfi.testing.errors import NotFired
from ldfi.testing.run_under_faults import Injected, faults

__all__ = ["ControlPlane", "Injected", "NotFired", "Poll", "faults"]
