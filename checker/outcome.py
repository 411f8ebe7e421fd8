"""What a run of a test leaves behind: an outcome where a service's run has evidence of arms.

A test has no control group. It passes, fails or says nothing, and can be run again. Nobody signs
such a record, so what rests on it is never more than lacking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from ldfi.checker import merkle
from ldfi.checker.canonical import canonical
from ldfi.checker.fields import Fields, text
from ldfi.checker.record import FAR, PURPOSES, VERDICTS, Rested, RunRecord

OUTCOMES: Final = ("passed", "failed", "skipped")


@dataclass(frozen=True)
class OutcomeRecord:
    """``number``: which run of the test it is, of those with faults, from 1 on. ``reason``: how it
    failed. ``kept``: it is from an earlier exploration of the same code, and was not made again.
    The rest is as :class:`~ldfi.checker.record.RunRecord` has it."""

    experiment: str
    request_class: str
    version: int
    number: int
    purpose: str
    hypothesis: tuple[str, ...]
    faults: tuple[str, ...]
    outcome: str
    verdict: str
    reason: str
    began: float
    ended: float
    fired: tuple[str, ...]
    relied_on: tuple[str, ...]
    degraded: bool
    traces: Rested
    state: str = "decided"
    overruled: None = None
    kept: bool = False

    def to_json(self) -> dict[str, Any]:
        """Write it as a document."""
        said = {
            name: list(each) if isinstance(each, tuple) else each
            for name, each in asdict(self).items()
            if name != "kept" or each  # as all were written before runs were kept
        }
        return {**said, "traces": self.traces.to_json()}

    def proof(self) -> dict[str, Any]:
        """Write what a certificate's run carries: all but the number."""
        return {name: value for name, value in self.to_json().items() if name != "number"}

    @cached_property
    def leaf(self) -> bytes:
        """Return its hash, as that of a leaf."""
        return merkle.leaf(canonical(self.to_json()))

    def wrong(self) -> Iterator[str]:
        """Return what in it does not follow from the rest."""
        if self.began > self.ended:
            yield "it ended before it began"
        if self.traces.count != 1:
            yield f"one outcome cannot rest on {self.traces.count} traces"
        said = "inconclusive"
        if self.fired and self.outcome != "skipped":
            said = "tolerated" if self.outcome == "passed" else "harmful"
        if self.verdict != said:
            yield f"it is {self.verdict}, its outcome says {said}"

    @classmethod
    def from_json(cls, value: Any, where: str = "the record") -> OutcomeRecord:
        """Read what :meth:`to_json` wrote. Raises Unreadable for anything else."""
        data = Fields(value, where)
        data.text("state", ("decided",))
        if data.has("overruled"):
            data.text("overruled", ())
        record = cls(
            experiment=data.text("experiment"),
            request_class=data.text("request_class"),
            version=data.whole("version"),
            number=data.whole("number", 1),
            purpose=data.text("purpose", PURPOSES),
            hypothesis=data.many("hypothesis", text),
            faults=data.many("faults", text),
            outcome=data.text("outcome", OUTCOMES),
            verdict=data.text("verdict", VERDICTS),
            reason=data.text("reason"),
            began=data.number("began", 0, FAR),
            ended=data.number("ended", 0, FAR),
            fired=data.many("fired", text),
            relied_on=data.many("relied_on", text),
            degraded=data.flag("degraded"),
            traces=Rested.from_json(data.inner("traces")),
            kept=data.has("kept") and data.flag("kept"),
        )
        data.done()
        return record


AnyRecord: TypeAlias = RunRecord | OutcomeRecord


def record_from(value: Any, where: str = "the record") -> AnyRecord:
    """Read a record of either kind. Raises Unreadable for anything else."""
    if isinstance(value, Mapping) and "outcome" in value:
        return OutcomeRecord.from_json(value, where)
    return RunRecord.from_json(value, where)
