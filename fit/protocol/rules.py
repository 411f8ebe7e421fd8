"""Rules: what the edge has been told to do, and the lease on which it was told.

A rule names one experiment: the request class it is about (a predicate), the shares of devices in
either arm, the faults, and how many members may be treated. Rules come as a lease of some seconds.
When it is not renewed, because the control plane is gone, or the network, or because it said stop,
the edge goes quiet.

A device that is treated is in no other experiment at once; one that is in control may be in control
of several, for nothing is done to it. A rule *yields to* the experiments that were armed when it
was armed: it treats no device that falls in an arm of one of them, and compares with none that one
of them treats. Of any two experiments whose lifetimes overlap, one was armed first, and the other
yields to it. So it holds whatever version of the rules an edge has, and in whatever order; all it
takes is that a rule's salt and shares never change, and that what it yields to stays on it until it
is disarmed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ldfi.fit.protocol.allocation import DEVICE_BITS, RANGE, Claim, Segments, mark_of
from ldfi.fit.protocol.context import DEFAULT_DELAY_MS, Arm
from ldfi.fit.protocol.errors import FitError, MalformedRules
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.features import HIDDEN, Features
from ldfi.fit.protocol.kinds import draws
from ldfi.fit.protocol.predicate import Predicate

MAX_LEASE_SECONDS: Final = 60.0
"""A longer lease is cut to this: it is how long injection may outlive the control plane."""

ARMED_WAIT_SECONDS: Final = 1.0
"""How long an edge waits for an answer while rules are armed: what was treated is never older than
this at the control plane."""

MAX_PATIENCE_SECONDS: Final = 120.0
"""A failure context is never asked to hold for longer: it is how long one more call may be made to
fail after a halt."""

_EXPERIMENT = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_MASK = RANGE - 1
_MAX_VERSION = 64
_MAX_DELAY_MS = 9_999_999

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rule:
    """One armed experiment. ``treatment`` and ``control`` are shares of all devices, 0 to 1.

    ``delay_ms``: the longest that a call may hang, whatever is drawn.
    ``members``: how many distinct devices this edge may treat, in all; None is no limit, and with
    0 the rule claims its devices and stamps none. ``patience``: seconds for which a failure
    context holds at least, from its request's arrival; by default as long as the lease.
    """

    experiment: str
    salt: str
    predicate: Predicate
    treatment: float
    control: float
    faults: tuple[Fault, ...]
    delay_ms: int = DEFAULT_DELAY_MS
    members: int | None = None
    yields_to: tuple[Claim, ...] = ()
    patience: float = 0.0
    claim: Claim = field(init=False, repr=False, compare=False)
    draws: bool = field(init=False, repr=False, compare=False)
    """Whether a fault's length is drawn anew for each request."""
    _yielded: tuple[Segments, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", any(draws(fault.kind) for fault in self.faults))
        object.__setattr__(self, "claim", Claim(self.salt, self.treatment, self.control))
        object.__setattr__(self, "_yielded", tuple(each.segments for each in self.yields_to))

    def arm_of(self, device: str) -> Arm | None:
        """Find the arm a device falls in, always the same one; None for nearly every device."""
        mark = mark_of(device)
        arm = self.claim.arm_of(mark)
        return arm if arm is not None and self.keeps(mark, arm) else None

    def keeps(self, mark: int, arm: Arm) -> bool:
        """Return whether those it yields to leave the rule a device that falls in this arm."""
        bits, mask, treats = mark & DEVICE_BITS, _MASK, arm == "treatment"
        for factor, summand, treated, control in self._yielded:  # Claim.arm_of, without the call
            place = (bits * factor + summand) & mask
            if place < treated or (treats and place >= control):
                return False
        return True

    def to_json(self) -> dict[str, Any]:
        """Write the rule as the control plane hands it to the edge."""
        return {
            "experiment": self.experiment,
            "salt": self.salt,
            "predicate": self.predicate.to_edge(),
            "treatment": self.treatment,
            "control": self.control,
            "faults": [str(fault) for fault in self.faults],
            "delay_ms": self.delay_ms,
            "members": self.members,
            **({"patience": self.patience} if self.patience else {}),
            "yields_to": [
                {"salt": each.salt, "treatment": each.treatment, "control": each.control}
                for each in self.yields_to
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rule:
        """Read what :meth:`to_json` wrote. Raises KeyError, TypeError, ValueError or FitError."""
        claim = _read_claim(data)
        return cls(
            experiment=_read_experiment(data["experiment"]),
            salt=claim.salt,
            predicate=Predicate.from_json(_typed(data["predicate"], list)),
            treatment=claim.treatment,
            control=claim.control,
            faults=tuple(Fault.parse(_typed(each, str)) for each in _typed(data["faults"], list)),
            delay_ms=_read_count(data["delay_ms"], _MAX_DELAY_MS),
            members=None if data.get("members") is None else _read_count(data["members"]),
            yields_to=tuple(map(_read_claim, _typed(data.get("yields_to") or [], list))),
            patience=_read_number(data.get("patience", 0.0), MAX_PATIENCE_SECONDS),
        )


@dataclass(frozen=True, slots=True)
class Lease:
    """Rules, and when they end by :func:`ldfi.fit.clock.steady`. The empty lease arms nothing."""

    rules: tuple[Rule, ...] = ()
    ends: float = 0.0
    version: str = ""
    wanted: frozenset[str] = field(init=False, repr=False, compare=False)
    """Features that its rules ask for: an edge reads no header that none of them names."""
    _segments: tuple[tuple[int, int, int, int, Rule], ...] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        rows = tuple((*rule.claim.segments, rule) for rule in self.rules)
        object.__setattr__(self, "_segments", rows)
        wanted = {c.feature for rule in self.rules for c in rule.predicate.conditions}
        object.__setattr__(self, "wanted", frozenset(wanted))

    @property
    def reads_bodies(self) -> bool:
        """Return whether a rule asks for what may stand in a body."""
        return any(name.partition(".")[0] in HIDDEN for name in self.wanted)

    def claims(self, mark: int) -> list[tuple[Rule, Arm]]:
        """List the rules that claim a device, given by its mark, each with the arm; whatever it
        asks for.

        There are several only where it is in control of all of them, once they yield to each other
        as they should. Where they do not, the first one in the lease has it.
        """
        found: list[tuple[Rule, Arm]] = []
        bits, mask = mark & DEVICE_BITS, _MASK
        for factor, summand, treated, control, rule in self._segments:
            place = (bits * factor + summand) & mask
            if treated <= place < control:
                continue
            arm: Arm = "treatment" if place < treated else "control"
            if rule.keeps(mark, arm) and not (found and arm == "treatment"):
                found.append((rule, arm))
                if arm == "treatment":
                    break
        return found

    def allocate(self, features: Features, device: str) -> tuple[Rule, Arm] | None:
        """Choose the experiment and arm of one request, allowances aside; None for neither."""
        return chosen(self.claims(mark_of(device)), features)


def chosen(claims: Iterable[tuple[Rule, Arm]], features: Features) -> tuple[Rule, Arm] | None:
    """Choose the first of these claims whose class the request is of."""
    return next((claim for claim in claims if claim[0].predicate.holds(features)), None)


def read_lease(document: object, asked_at: float) -> Lease:
    """Read the control plane's answer; the lease counts from when the question was asked.

    All or nothing: raises MalformedRules where any part is not understood.
    """
    try:
        data = _typed(document, dict)
        rules = tuple(map(Rule.from_json, _typed(data["rules"], list)))
        seconds = _read_number(data["lease_seconds"], math.inf)
        version = _typed(data["version"], str)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, FitError) as error:
        raise MalformedRules(f"rules not understood: {type(error).__name__}: {error}") from error
    if len({rule.experiment for rule in rules}) < len(rules):
        raise MalformedRules("rules not understood: two are of the same experiment")
    if len(version) > _MAX_VERSION:
        raise MalformedRules(
            f"rules not understood: a version of {len(version)} characters, over {_MAX_VERSION}"
        )
    return Lease(rules, asked_at + min(seconds, MAX_LEASE_SECONDS), version)


def _read_claim(data: Mapping[str, Any]) -> Claim:
    treatment, control = (_read_number(data[name], 1.0) for name in ("treatment", "control"))
    if treatment + control > 1.0 + 1e-9:
        raise ValueError(f"shares of {treatment} and {control} are more than all devices")
    return Claim(_typed(data["salt"], str), treatment, control)


def _read_experiment(value: object) -> str:
    if not isinstance(value, str) or not _EXPERIMENT.fullmatch(value):
        raise ValueError(f"{str(value)[:80]!r} cannot be the id of an experiment")
    return value


def _read_number(value: object, largest: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= largest:
        raise ValueError(f"{str(value)[:80]} is no number from 0 to {largest}")
    return float(value)


def _read_count(value: object, largest: float = math.inf) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= largest:
        raise ValueError(f"{str(value)[:80]} is not a count from 0 to {largest}")
    return value


def _typed(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{str(value)[:80]!r} is no {kind.__name__}")
    return value
