"""What would hurt right now? Asked by people who are about to take something down.

From the evidence alone, without an experiment: with some points down, which further single failure
is known to hurt, which is proved to be survived, and of which does nobody know. As sound as the
evidence is: see ``docs/what-a-run-teaches.md`` for what that assumes. *Down* means that every call
fails at once; a call that hangs is a delay, and that is not asked here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.fit.protocol.faults import DOWN
from ldfi.fit.protocol.points import Point
from ldfi.solver import Judgement


@dataclass(frozen=True, slots=True)
class WhatIf:
    """For one request class. ``already``: what is known of the outage by itself.

    The rest are systems and points, each by what one more failure there would do: ``hurts``,
    ``safe``, or nobody knows (``unknown``). ``anyway``: those of ``hurts`` that hurt with nothing
    else down as well, so the outage is not to blame for them.
    """

    request_class: str
    down: tuple[str, ...]
    already: Judgement
    hurts: tuple[str, ...]
    safe: tuple[str, ...]
    unknown: tuple[str, ...]
    anyway: tuple[str, ...] = ()

    @property
    def hurts_now(self) -> tuple[str, ...]:
        """The single failures that hurt because of the outage."""
        return tuple(point for point in self.hurts if point not in self.anyway)


def what_if(knowledge: Knowledge, patterns: Iterable[str]) -> WhatIf | None:
    """Return what a class has to expect while everything that matches the patterns is down.

    Patterns name points, or the services and systems that points reach, with ``*``. None when the
    class never calls any of it.
    """
    down = points_named(patterns, knowledge)
    if not down:
        return None
    judged: dict[Judgement, list[str]] = {"failing": [], "safe": [], "open": []}
    for point in sorted(knowledge.points - down):
        judged[knowledge.judge(down | {point})].append(point)
    return WhatIf(
        request_class=knowledge.name,
        down=tuple(sorted(down)),
        already=knowledge.judge(down),
        hurts=tuple(judged["failing"]),
        safe=tuple(judged["safe"]),
        unknown=tuple(judged["open"]),
        anyway=tuple(p for p in judged["failing"] if knowledge.judge({p}) == "failing"),
    )


def points_named(patterns: Iterable[str], knowledge: Knowledge) -> frozenset[str]:
    """List the points of a class that fail when everything that the patterns name is down.

    A point goes by its own name and by those of what it reaches: the service or system, and the
    host that its caller asks for, with and without its port. ``down@SYSTEM``, as findings have it,
    is the system.
    """
    plain = tuple(pattern.removeprefix(DOWN) for pattern in patterns)
    return frozenset(
        point for point in knowledge.points if matching(plain, _names(point, knowledge)) is not None
    )


def _names(point: str, knowledge: Knowledge) -> list[str]:
    peer = Point.parse(point).peer
    system = knowledge.traffic.topology.callees.get(point, "")
    return list(filter(None, (point, system, peer, peer.rpartition(":")[0])))
