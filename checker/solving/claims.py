"""Whether what a certificate says is harmful was seen to be, and is all that was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ldfi.checker.solving.evidence import World
from ldfi.checker.solving.language import members

TWO = 2
"""Faults of which one excludes the other."""


def wrong_claims(world: World, data: dict[str, Any]) -> list[str]:
    """Return the claims that do not follow from the runs."""
    return [
        *_wrong_minimal(world, data),
        *_wrong_findings(world, data),
        *_wrong_larger(world, data),
        *_unexplained(world, data),
        *_wrong_presumed(world, data),
    ]


def _wrong_minimal(world: World, data: dict[str, Any]) -> Iterator[str]:
    """Report minimal failing sets that were not seen to fail, or may not be minimal."""
    proofs = data["derivation"]["minimal"]
    if len(proofs) != len(data["minimal_failing_sets"]):
        yield "not every minimal failing set has runs that prove it"
        return
    largest = data["axioms"]["bounds"]["max_size"]
    for faults, proof in zip(data["minimal_failing_sets"], proofs, strict=True):
        said, variables = _said(faults), world.language.bits(faults)
        if largest is not None and len(faults) > largest:
            yield f"{said} is larger than the bounds"
        bad = world.bad.get(proof["run"])
        if bad is None or bad.points & ~world.language.touched(variables):
            yield f"run {proof['run']} does not convict {said}"
        if proof["needed"].keys() != set(faults):
            yield f"{said} may not be minimal: it does not say which runs show that"
            continue
        for fault, run in proof["needed"].items():
            rest = world.language.touched(variables & ~world.language.bits([fault]))
            world.effort.spend(len(faults))
            if not world.shows(run, rest) or world.fails(rest):
                yield f"{said} may not be minimal: run {run} does not show {fault} to be needed"


def _wrong_findings(world: World, data: dict[str, Any]) -> Iterator[str]:
    """Report findings that are no minimal failing sets, or say what another one says, and minimal
    failing sets that no finding says."""
    minimal = [frozenset(each) for each in data["minimal_failing_sets"]]
    findings = [frozenset(each) for each in data["findings"]]
    whole = {each: world.language.expand(each) for each in {*minimal, *findings}}
    world.effort.spend((len(minimal) + len(findings)) * len(findings))
    for each in findings:
        if each not in minimal:
            yield f"the finding {_said(each)} is not among the minimal failing sets"
        if any(
            other != each and not whole[other] & ~whole[each] and len(other) <= len(each)
            for other in findings
        ):
            yield f"the finding {_said(each)} says no more than another"
    for each in minimal:
        if not any(not whole[f] & ~whole[each] and len(f) <= len(each) for f in findings):
            yield f"{_said(each)} fails, and no finding says so"


def _wrong_larger(world: World, data: dict[str, Any]) -> Iterator[str]:
    """Report sets filed as larger than the bounds that were not seen to fail, or are findings."""
    runs, down = data["derivation"]["larger"], world.language.down
    if len(runs) != len(data["larger_findings"]):
        yield "not every larger finding has a run that proves it"
        return
    minimal = [world.language.expand(each) | down for each in data["minimal_failing_sets"]]
    for faults, run in zip(data["larger_findings"], runs, strict=True):
        variables = world.language.bits(faults)
        touched = world.language.touched(variables)
        bad = world.bad.get(run)
        if bad is None or bad.points | down != touched:
            yield f"run {run} does not convict {_said(faults)}"
        world.effort.spend(len(minimal))
        if any(not each & ~touched for each in minimal) or _is_finding(world, data, variables):
            yield f"{_said(faults)} is filed as larger than what is known to fail, and is not"


def _is_finding(world: World, data: dict[str, Any], variables: int) -> bool:
    """Return whether this is within the bounds, and everything less is survived."""
    largest = data["axioms"]["bounds"]["max_size"]
    if largest is not None and variables.bit_count() > largest:
        return False
    if not world.language.admissible(variables):
        return False
    for each in members(variables):
        world.effort.spend(variables.bit_count())
        rest = world.language.touched(variables & ~(1 << each))
        if not world.safe(rest) or world.fails(rest):
            return False
    return True


def _unexplained(world: World, data: dict[str, Any]) -> Iterator[str]:
    """Report failed runs of which it does not say what made them fail."""
    down = world.language.down
    known = [
        world.language.expand(each) & ~down
        for each in (*data["minimal_failing_sets"], *data["larger_findings"])
    ]
    for bad in world.bad.values():
        world.effort.spend(1 + len(known))
        if not any(not each & ~bad.points for each in known):
            yield f"the failure of run {bad.number} is explained by no finding"


def _wrong_presumed(world: World, data: dict[str, Any]) -> Iterator[str]:
    """Report what is presumed harmful although it is known not to be, or for no reason: it has to
    be a failing set, with some faults in place of others that cannot happen with them."""
    language = world.language
    apart = {frozenset(each) for each in data["axioms"]["impossible"] if len(each) == TWO}
    for each in data["axioms"]["bounds"].get("presumed", ()):
        said, touched = _said(each["faults"]), language.touched(language.bits(each["faults"]))
        if world.safe(touched):
            yield f"{said} is presumed harmful, and was shown to be survived"
        if not world.fails(language.touched(language.bits(each["of"]))):
            yield f"{said} is presumed harmful, as {_said(each['of'])} is, which was not seen"
        new, old = set(each["faults"]) - set(each["of"]), set(each["of"]) - set(each["faults"])
        world.effort.spend(1 + len(new) * len(old))
        pairs = {one: {o for o in old if frozenset({one, o}) in apart} for one in new}
        if len(new) != len(old) or not all(pairs.values()) or set().union(*pairs.values()) != old:
            yield f"{said} is presumed harmful, and is no other way for {_said(each['of'])} to fail"


def _said(faults: Any) -> str:
    return f"{{{', '.join(sorted(faults))}}}"
