"""Protocols with known answers: bounds, all minimal counterexamples, and what others needed.

``first`` and ``all``: executions that the papers or Molly's code needed to the first counterexample
and to the end, the failure-free one included; where both are known, the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.solver.protocols.commit import (
    AGENTS,
    CollaborativeTermination,
    TwoPhaseCommit,
    TwoPhaseCommitOptimist,
    TwoPhaseCommitTimeout,
    TwoPhaseCommitTimeoutOptimist,
)
from tests.solver.protocols.deliver import (
    AckDeliver,
    ClassicDeliver,
    RedundantDeliver,
    RetryDeliver,
    SimpleDeliver,
)
from tests.solver.protocols.election import Bully, PaxosSynod
from tests.solver.protocols.kafka import Kafka
from tests.solver.protocols.model import Faults, Setting
from tests.solver.protocols.three_phase import ThreePhaseCommit


@dataclass(frozen=True)
class Known:
    """A protocol within bounds, and all its minimal counterexamples of at most ``max_size``."""

    name: str
    setting: Setting
    counterexamples: frozenset[Faults] = frozenset()
    max_size: int | None = None
    first: int | None = None
    all: int | None = None


def _sets(*texts: str) -> frozenset[Faults]:
    return frozenset(frozenset(text.split()) for text in texts)


_BLOCKING = ("C(C,2)", "C(C,3)", "C(C,4)")
_AGENTS = ("C(a,2)", "C(b,2)", "C(d,2)")
_THREE_PHASE = [
    *(f"O({x},C,4) O(C,{y},6)" for x in AGENTS for y in AGENTS),
    *(f"C({x},{t}) O(C,{y},6)" for x in AGENTS for y in AGENTS if x != y for t in (3, 4)),
]

CATALOGUE = [
    Known("simple-deliv", Setting(SimpleDeliver, 4, 2, 0), _sets("O(a,b,1)", "O(a,c,1)"), first=2),
    Known(
        "retry-deliv",
        Setting(RetryDeliver, 4, 2, 1),
        _sets("C(a,2) O(a,b,1)", "C(a,2) O(a,c,1)"),
        first=3,
    ),
    Known("retry-deliv long", Setting(RetryDeliver, 25, 23, 0)),
    Known(
        "classic-deliv",
        Setting(ClassicDeliver, 5, 3, 0),
        _sets("O(a,b,1) O(c,a,2) O(c,b,2)", "O(a,c,1) O(b,a,2) O(b,c,2)"),
        first=5,
    ),
    Known("classic-deliv fail-stop", Setting(ClassicDeliver, 6, 0, 2)),
    Known("redun-deliv", Setting(RedundantDeliver, 6, 3, 1), all=26),
    Known("redun-deliv long", Setting(RedundantDeliver, 11, 10, 1), all=11),
    Known("ack-deliv", Setting(AckDeliver, 6, 3, 1), all=11),
    Known("ack-deliv long", Setting(AckDeliver, 8, 7, 1), all=673),
    Known("2pc", Setting(TwoPhaseCommit, 5, 0, 1), _sets(*_BLOCKING, *_AGENTS), first=2),
    Known("2pc optimist", Setting(TwoPhaseCommitOptimist, 6, 0, 1), _sets(*_AGENTS)),
    Known("2pc losses", Setting(TwoPhaseCommit, 7, 3, 0)),
    Known("2pc timeout", Setting(TwoPhaseCommitTimeout, 6, 0, 1), _sets(*_BLOCKING)),
    Known("2pc timeout optimist", Setting(TwoPhaseCommitTimeoutOptimist, 6, 0, 1)),
    Known("2pc timeout optimist 2", Setting(TwoPhaseCommitTimeoutOptimist, 6, 0, 2)),
    Known("2pc-ctp short", Setting(CollaborativeTermination, 6, 0, 1), _sets(*_BLOCKING)),
    Known("2pc-ctp", Setting(CollaborativeTermination, 8, 0, 1), _sets(*_BLOCKING)),
    Known("3pc", Setting(ThreePhaseCommit, 8, 0, 1)),
    Known("3pc two crashes", Setting(ThreePhaseCommit, 8, 0, 2)),
    Known(
        "3pc losses",
        Setting(ThreePhaseCommit, 9, 7, 1),
        _sets(*_THREE_PHASE),
        max_size=2,
        first=55,
    ),
    Known("kafka losses", Setting(Kafka, 7, 4, 0), max_size=3, all=513),
    Known(
        "kafka",
        Setting(Kafka, 7, 4, 1),
        _sets("O(b,Z,1) O(c,Z,1) C(a,5)", "O(b,Z,1) O(c,Z,1) C(a,6)"),
        max_size=3,
        all=200,  # ours; Molly needs 532 here
    ),
    Known("bully-le", Setting(Bully, 6, 4, 1)),
    Known("paxos-synod", Setting(PaxosSynod, 8, 3, 1), all=173),
]
