"""What a certificate is true under, in words: its axioms, which no check can bear out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ldfi.checker.solving.language import Vocabulary, members


def assumed(data: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Say everything that the certificate takes for granted, by topic; no topic is empty."""
    axioms = data["axioms"]
    bounds, language = axioms["bounds"], axioms["language"]
    alike = _alike(language["implications"])
    unreached = {
        name: text
        for name, text in bounds.get("no_injector", {}).items()
        if name in bounds["protected"]
    }
    topics = {
        "rules": tuple(_rules(axioms)),
        "evidence": tuple(_evidence(data)),
        "the only faults": tuple(language["faults"]),
        "protected": tuple(name for name in bounds["protected"] if name not in unreached),
        "no injector, and not tried": tuple(
            f"{name}: install {text}" for name, text in unreached.items()
        ),
        "left out": tuple(" with ".join(each) for each in bounds["exclusions"]),
        "presumed harmful, and not tried": tuple(
            f"{' with '.join(each['faults'])}, as {' with '.join(each['of'])} is"
            for each in bounds.get("presumed", ())
        ),
        "down": tuple(bounds["down"]),
        "cannot happen": tuple(" with ".join(each) for each in axioms["impossible"]),
        "domains": tuple(
            f"{name} is {', '.join(inside)}" for name, inside in sorted(language["domains"].items())
        ),
        "alike": tuple(f"{one} and {other}" for one, other in sorted(alike) if one < other),
        "consequences": tuple(
            f"{each['stronger']} brings {each['weaker']} about"
            f" ({'declared' if each['run'] is None else 'run ' + str(each['run'])})"
            for each in language["implications"]
            if (each["stronger"], each["weaker"]) not in alike
        ),
    }
    return {topic: texts for topic, texts in topics.items() if texts}


def _alike(implications: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """List the pairs of faults of which either was declared to bring the other about."""
    said = {(each["stronger"], each["weaker"]) for each in implications if each["run"] is None}
    return {(one, other) for one, other in said if one != other and (other, one) in said}


def _rules(axioms: dict[str, Any]) -> Iterator[str]:
    largest = axioms["bounds"]["max_size"]
    yield f"at most {largest} faults at once" if largest is not None else "any number of faults"
    if axioms["monotone"]:
        yield "more faults never help"
    else:
        yield "more faults may help: a good run tells only of sets with all that failed in it"
    if axioms["deterministic"]:
        yield "runs do not vary: what one good run relied on was enough by itself"
    for verb, times in axioms["believed"].items():
        yield f"what {verb} {_times(times)} is believed"


def _evidence(data: dict[str, Any]) -> Iterator[str]:
    runs = data["evidence"]
    experiments = sum(run["origin"] == "injected" for run in runs)
    requests = sum(run["count"] for run in runs if run["origin"] == "observed")
    yield f"{experiments} experiments and {requests} observed requests went as recorded"
    if data["violations"]:
        yield f"{len(data['violations'])} times more faults did help"


def left_out(language: Vocabulary, data: dict[str, Any]) -> Iterator[frozenset[str]]:
    """List what was never tried because somebody said so: sets of faults of which each has to
    have one that is out of scope. What a domain brings about that may be tried is no such set.

    A fault is also left out where it is said to be impossible by itself, or to bring about one that
    must not be tried. A domain is where none of its faults that kept it from being tried is out of
    scope; what a run relied on is no domain, whatever it is called.
    """
    bounds = data["axioms"]["bounds"]
    yield from (frozenset({name}) for name in (*bounds["protected"], *bounds["down"]))
    alone = {each[0] for each in data["axioms"]["impossible"] if len(each) == 1}
    yield from (frozenset({name}) for name in sorted(alone))
    said = {*bounds["protected"], *bounds["down"], *alone}
    inside = {name for name, many in data["axioms"]["language"]["domains"].items() if many}
    inside -= {name for run in data["evidence"] for name in run["support"] or ()}
    for number, name in enumerate(language.names):
        if name not in said and not language.offered >> number & 1:
            yield frozenset({name, *_kept_from(language, number)} if name in inside else {name})
    domains = [
        language.reach(language.index[name])
        for name in data["axioms"]["language"]["domains"]
        if language.offered >> language.index[name] & 1
    ]
    presumed = [each["faults"] for each in bounds.get("presumed", ())]
    for each in (*bounds["exclusions"], *presumed):
        language.effort.spend(1 + len(domains))
        together = language.bits(each)
        if not any(not together & ~whole for whole in domains):
            yield frozenset(each)


def _kept_from(language: Vocabulary, number: int) -> Iterator[str]:
    """List the faults of a domain because of which it is not tried."""
    for each in members(language.reach(number) & (language.protected | language.down)):
        yield language.names[each]


def _times(times: int) -> str:
    return {1: "once", 2: "twice"}.get(times, f"{times} times")
