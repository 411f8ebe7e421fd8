"""Names as people say them: services and paths instead of injection points and addresses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ldfi.fit.protocol.points import Point, is_address
from ldfi.lineage.lineage import Lineage

_K = TypeVar("_K")
_SEPARATORS = "-._"
_SYSTEMS = {"db": "database", "message": "broker"}


@dataclass(frozen=True, slots=True)
class Names:
    """Who is behind the points and addresses of some traces, as far as they say."""

    certain: Mapping[str, str]
    """Point → the service that answered it."""
    answers: Mapping[tuple[str, str], str]
    """Peer and path → the only service that ever answered there."""
    peers: Mapping[str, str]
    """Peer → the only service that ever answered there."""
    services: frozenset[str]

    @classmethod
    def learned(cls, runs: Iterable[Lineage]) -> Names:
        """Learn who answered, and where."""
        certain: dict[str, str] = {}
        paths: dict[tuple[str, str], set[str]] = defaultdict(set)
        peers: dict[str, set[str]] = defaultdict(set)
        services: set[str] = set()
        for run in runs:
            services |= {run.service, *run.callees.values()}
            certain |= run.callees
            for point, callee in run.callees.items():
                read = Point.parse(point)
                if read.peer:
                    paths[read.peer, read.template].add(callee)
                    peers[read.peer].add(callee)
        return cls(certain, _only(paths), _only(peers), frozenset(services))

    def service(self, point: str) -> str:
        """Name what a call reaches; never guess where several services answer at one address."""
        read = Point.parse(point)
        known = (
            self.certain.get(point)
            or self.answers.get((read.peer, read.template))
            or self.peers.get(read.peer)
        )
        if known and not is_address(known):
            return known
        if not read.peer:
            return f"{read.caller}'s {read.operation}"
        if is_address(read.peer):
            return f"the {_SYSTEMS.get(read.kind, 'service')} at {read.peer}"
        return read.peer.partition(":")[0]

    def call(self, point: str) -> str:
        """Return ``api → ratings: GET /titles/*``; names that are not points stay as they are."""
        if ">" not in point:
            return point
        read = Point.parse(point)
        what = f"{read.operation} {read.template}".strip()
        if read.kind == "db":
            what = f"{read.operation} {read.template.lstrip('/')}".strip()
        service = self.service(point)
        detail = f": {what}" if what and what not in service else ""
        return f"{'' if read.caller == 'unknown' else f'{read.caller} → '}{service}{detail}"

    def told(self, fault: str) -> str:
        """Return the service that a file of outcomes means: ``customers`` is
        ``customers-service``, if no other name begins like that."""
        where = fault.partition("@")[2].partition("#")[0]
        alike = [name for name in self.services if where and means(where, name)]
        return where if where in self.services or len(alike) != 1 else alike[0]


def means(told: str, service: str) -> bool:
    """Return whether a name somebody wrote down may be that of a service, or its beginning."""
    return service == told or service.startswith(tuple(told + mark for mark in _SEPARATORS))


def _only(found: Mapping[_K, set[str]]) -> dict[_K, str]:
    return {key: min(names) for key, names in found.items() if len(names) == 1}
