"""What one run leaves behind: all that its verdict came from, in one document.

It is written when an experiment ends and never changed. The traces it rests on may be gone long
before; their hash stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, get_args

from ldfi.checker import merkle
from ldfi.checker.canonical import canonical
from ldfi.checker.errors import Unreadable
from ldfi.checker.fields import Fields, text, wholes
from ldfi.checker.statistics import LATER, LETTERS, JudgingRule, Look

Overruled = Literal[
    "bystanders", "nothing fired", "silence", "reach", "patience", "killed", "seldom", "answered"
]
"""Why the verdict is not what the tests say: others were hurt (*interference*); nothing fired; too
many never reported; requests stopped reaching the point; they outlasted their failure contexts; a
process seems to have died of it; too little is known of devices that ask seldom; what fired did so
when devices had their answers."""

ProofSlot = Literal["alone", "first", "second"]
"""Whether it proves by itself, or is one of two that do so together."""

RULES: Final = ("sequential", "threshold")
VERDICTS: Final = ("harmful", "tolerated", "inconclusive")
PURPOSES: Final = ("explore", "confirm", "verify", "repeat", "recheck")
FAR: Final = 1e12
"""The largest time and the largest evidence that are read."""


@dataclass(frozen=True, slots=True)
class Arms:
    """Outcomes that counted in either arm, and how many of them failed."""

    control: int
    control_failed: int
    treated: int
    treated_failed: int

    def to_json(self) -> dict[str, list[int]]:
        """Write it down."""
        return {
            "control": [self.control, self.control_failed],
            "treatment": [self.treated, self.treated_failed],
        }


@dataclass(frozen=True, slots=True)
class Reports:
    """Devices of one arm. ``enrolled``: let in by the edges; ``heard``: of whose first request
    something was heard; ``reached``: of these, those that reached the point; ``well``: of these,
    those that did not fail."""

    enrolled: int
    heard: int
    reached: int
    well: int

    @property
    def silent(self) -> int:
        """Count those of whose first request nothing came."""
        return max(0, self.enrolled - self.heard)

    @property
    def exposed(self) -> int:
        """Count those that may have reached the point."""
        return self.reached + self.silent

    def to_json(self) -> list[int]:
        """Write it down."""
        return [self.enrolled, self.heard, self.reached, self.well]


@dataclass(frozen=True, slots=True)
class BothReports:
    """Who was heard of, in either arm."""

    control: Reports
    treatment: Reports

    @property
    def look(self) -> Look:
        """Return, for either arm, those that may have reached the point, and those of them that
        were not heard of and well."""
        c, t = self.control, self.treatment
        return c.exposed, c.exposed - c.well, t.exposed, t.exposed - t.well

    @property
    def share(self) -> float:
        """Return the share of treated devices that were heard of; 1 where there are none."""
        treated = self.treatment
        return treated.heard / treated.enrolled if treated.enrolled else 1.0

    def to_json(self) -> dict[str, list[int]]:
        """Write it down."""
        return {"control": self.control.to_json(), "treatment": self.treatment.to_json()}


@dataclass(frozen=True, slots=True)
class Rested:
    """The traces of the outcomes that counted, in their order: how many, and the root of a Merkle
    tree over them. ``named``: some of them, each with the hash of its spans."""

    count: int
    root: str
    named: tuple[tuple[str, str], ...] = ()

    @classmethod
    def on(cls, traces: list[tuple[str, str, str]], named: tuple[str, ...] = ()) -> Rested:
        """Make it of (trace id, letter of its outcome, hash of its spans)."""
        leaves = [merkle.leaf(canonical(each)) for each in traces]
        hashes = {trace_id: hashed for trace_id, _, hashed in traces}
        root = merkle.root(len(leaves), merkle.lookup(leaves)).hex()
        return cls(len(traces), root, tuple((e, hashes[e]) for e in named if e in hashes))

    def to_json(self) -> dict[str, Any]:
        """Write it down."""
        return {"count": self.count, "root": self.root, "named": list(map(list, self.named))}

    @classmethod
    def from_json(cls, data: Fields) -> Rested:
        """Read what :meth:`to_json` wrote. Raises Unreadable for anything else."""
        root = data.hashed("root").hex()
        found = cls(data.whole("count"), root, data.many("named", _trace))
        data.done()
        return found


@dataclass(frozen=True)
class RunRecord:
    """``number``: which run of its class version it is, from 1 on. ``began``, ``ended``: Unix
    seconds. ``own``: the α that the campaign asked for; ``level``: what e-LOND gave; ``rule.alpha``
    is what follows from both and the ``slot``. ``order``: outcomes one by one; ``looks``: as
    somebody else counted them; one of the two is None. ``worse``, ``not_worse``: logarithms of the
    evidence. ``reports``: who was heard of; ``held``: seconds that failure contexts were sure to
    hold; ``seldom``: ``s`` for each of ``order`` that is of a device that asks seldom, ``o`` for
    the others, where there are so many such devices that it has to be shown of them by themselves.
    Earlier records say none of it, and are written without. ``followed``: seconds for which each
    device was followed from its first request on; 0 where none was, None in records of before, when
    *tolerated* was said as soon as it could be."""

    experiment: str
    request_class: str
    version: int
    number: int
    purpose: str
    hypothesis: tuple[str, ...]
    faults: tuple[str, ...]
    state: str
    verdict: str | None
    overruled: str | None
    reason: str
    began: float
    ended: float
    rule: JudgingRule
    own: float
    level: float | None
    slot: str
    opening: tuple[float, float] | None
    order: str | None
    looks: tuple[Look, ...] | None
    arms: Arms
    worse: float
    not_worse: float
    fired: tuple[str, ...]
    relied_on: tuple[str, ...]
    degraded: bool
    traces: Rested
    reports: BothReports | None = None
    held: float | None = None
    seldom: str | None = None
    followed: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Write it as a document."""
        rule = self.rule
        added = {
            "reports": None if self.reports is None else self.reports.to_json(),
            "held": self.held,
            "seldom": self.seldom,
        }
        return {
            **{name: value for name, value in added.items() if value is not None},
            "experiment": self.experiment,
            "request_class": self.request_class,
            "version": self.version,
            "number": self.number,
            "purpose": self.purpose,
            "hypothesis": list(self.hypothesis),
            "faults": list(self.faults),
            "state": self.state,
            "verdict": self.verdict,
            "overruled": self.overruled,
            "reason": self.reason,
            "began": self.began,
            "ended": self.ended,
            "rule": {
                "name": rule.name,
                "alpha": rule.alpha,
                "alpha_tolerated": rule.alpha_tolerated,
                "delta": rule.delta,
                "min_samples": rule.min_samples,
                "ratio": rule.ratio,
            },
            "level": {
                "own": self.own,
                "given": self.level,
                "slot": self.slot,
                "opening": None if self.opening is None else list(self.opening),
            },
            "order": self.order,
            "looks": None if self.looks is None else list(map(list, self.looks)),
            "arms": self.arms.to_json(),
            "evidence": {"worse": self.worse, "not_worse": self.not_worse},
            "fired": list(self.fired),
            "relied_on": list(self.relied_on),
            "degraded": self.degraded,
            "traces": self.traces.to_json(),
            **({} if self.followed is None else {"followed": self.followed}),
        }

    def proof(self) -> dict[str, Any]:
        """Write what a certificate's run carries: all but the number, which the chain gives."""
        return {name: value for name, value in self.to_json().items() if name != "number"}

    @classmethod
    def of_proof(cls, proof: Mapping[str, Any], number: int = 1) -> RunRecord:
        """Read what :meth:`proof` wrote. Raises Unreadable for anything else."""
        return cls.from_json({**proof, "number": number}, "the proof")

    @cached_property
    def written(self) -> bytes:
        """Write it as the bytes that are hashed."""
        return canonical(self.to_json())

    @cached_property
    def leaf(self) -> bytes:
        """Return its hash, as a leaf of the tree."""
        return merkle.leaf(self.written)

    @classmethod
    def from_json(cls, value: Any, where: str = "the record") -> RunRecord:
        """Read what :meth:`to_json` wrote. Raises Unreadable for anything else."""
        data = Fields(value, where)
        level = data.inner("level")
        followed = data.number("followed", 0, FAR) if data.has("followed") else None
        letters = LETTERS if followed is None else LETTERS | LATER
        record = cls(
            experiment=data.text("experiment"),
            request_class=data.text("request_class"),
            version=data.whole("version"),
            number=data.whole("number", 1),
            purpose=data.text("purpose", PURPOSES),
            hypothesis=data.many("hypothesis", text),
            faults=data.many("faults", text),
            state=data.text("state", ("decided", "aborted")),
            verdict=data.text("verdict", VERDICTS) if data.has("verdict") else None,
            overruled=(
                data.text("overruled", get_args(Overruled)) if data.has("overruled") else None
            ),
            reason=data.text("reason"),
            began=data.number("began", 0, FAR),
            ended=data.number("ended", 0, FAR),
            rule=_rule(data.inner("rule")),
            own=level.number("own", 0, 1),
            level=level.number("given", 0, 1) if level.has("given") else None,
            slot=level.text("slot", get_args(ProofSlot)),
            opening=_opening(level) if level.has("opening") else None,
            order=_order(data, letters) if data.has("order") else None,
            looks=data.many("looks", _look) if data.has("looks") else None,
            arms=_arms(data.inner("arms")),
            **_evidence(data.inner("evidence")),
            fired=data.many("fired", text),
            relied_on=data.many("relied_on", text),
            degraded=data.flag("degraded"),
            traces=Rested.from_json(data.inner("traces")),
            reports=_reports(data.inner("reports")) if data.has("reports") else None,
            held=data.number("held", 0, FAR) if data.has("held") else None,
            seldom=data.text("seldom") if data.has("seldom") else None,
            followed=followed,
        )
        level.done()
        data.done()
        return record


def _rule(data: Fields) -> JudgingRule:
    rule = JudgingRule(
        name=data.text("name", RULES),
        alpha=data.number("alpha", 1e-300, 1),
        alpha_tolerated=data.number("alpha_tolerated", 1e-300, 1),
        delta=data.number("delta", 1e-9, 1 - 1e-9),
        min_samples=data.whole("min_samples", 1),
        ratio=data.number("ratio", 1e-9, 1e9),
    )
    data.done()
    return rule


def _evidence(data: Fields) -> dict[str, float]:
    found = {name: data.number(name, -FAR, FAR) for name in ("worse", "not_worse")}
    data.done()
    return found


def _arms(data: Fields) -> Arms:
    control = wholes(data.take("control"), "arms: control", 2)
    treated = wholes(data.take("treatment"), "arms: treatment", 2)
    data.done()
    return Arms(*control, *treated)


def _reports(data: Fields) -> BothReports:
    control, treatment = (
        Reports(*wholes(data.take(name), f"{data.where}: {name}", 4))
        for name in ("control", "treatment")
    )
    data.done()
    return BothReports(control, treatment)


def _order(data: Fields, letters: frozenset[str]) -> str:
    order = data.text("order")
    if not set(order) <= letters:
        raise Unreadable(f"{data.where}: order has letters that mean nothing")
    return order


def _look(value: Any, where: str) -> Look:
    n0, f0, n1, f1 = wholes(value, where, 4)
    if f0 > n0 or f1 > n1:
        raise Unreadable(f"{where}: more failed than there were")
    return n0, f0, n1, f1


def _opening(data: Fields) -> tuple[float, float]:
    value = data.take("opening")
    if not isinstance(value, list) or len(value) != 2:
        raise Unreadable(f"{data.where}: opening is not a pair")
    pair = Fields({"evidence": value[0], "level": value[1]}, f"{data.where}: opening")
    return pair.number("evidence", -FAR, 700), pair.number("level", 0, 1)


def _trace(value: Any, where: str) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise Unreadable(f"{where} is not a pair")
    pair = Fields({"id": value[0], "spans": value[1]}, where)
    return pair.text("id"), pair.hashed("spans").hex()
