"""Which edge was given how many of an experiment's members, and has used how many."""

from __future__ import annotations

from typing import Final, NamedTuple

BY_ADDRESS: Final = "devices are told apart by address: people behind one address count as one"


class EdgeShare(NamedTuple):
    """``given``: devices that the edge may have treated, or may still treat; ``used``: those that
    it says it has treated. ``token``: the name of the token that it calls with, empty where it did
    not call since the service began. ``behind``: for how many edges it stands, a relay for several.
    ``by_address``: it tells some devices apart by their address (:data:`BY_ADDRESS`).
    """

    edge: str
    token: str
    behind: int
    given: int
    used: int
    by_address: bool = False
