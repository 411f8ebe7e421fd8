"""Where points stand: what each one reaches."""

from __future__ import annotations

from ldfi.experiments.domain.traffic.topology import Topology
from ldfi.lineage.span import Span
from ldfi.testing.spans import lineage, span

POINTS = ("api>http:GET:127.0.0.1:8081/a", "api>http:GET:127.0.0.1:8081/b")


def request(*answered: str) -> list[Span]:
    """Both calls, of which some are answered by the service ``ratings``."""
    spans = [span("root", kind="server", at=(0, 9))]
    for number, point in enumerate(POINTS):
        spans.append(span(f"call{number}", "root", point=point))
        if point in answered:
            spans.append(span(f"answer{number}", f"call{number}", "server", "ratings"))
    return spans


def test_who_has_answered_is_not_forgotten_when_a_call_never_arrives() -> None:
    topology = Topology()
    topology.learn(lineage(*request()))
    assert topology.shared() == {"127.0.0.1:8081": frozenset(POINTS)}

    topology.learn(lineage(*request(*POINTS)))
    topology.learn(lineage(*request(POINTS[0])))  # the other one is refused, say

    assert topology.shared() == {"ratings": frozenset(POINTS)}
