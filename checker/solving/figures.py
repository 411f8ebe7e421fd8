"""Whether the figures of a certificate, and what it says of its runs, follow from the runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ldfi.checker.solving.effort import Effort
from ldfi.checker.solving.evidence import Reading, World

TWICE = 2
"""A contradiction is settled only where each of its sides was seen so often."""


def wrong_figures(world: World, data: dict[str, Any]) -> list[str]:
    """Return the figures that do not follow from the runs, learning the runs one after the
    other."""
    return [
        *_wrong_rechecks(world, data),
        *_wrong_runs(data, world.effort),
        *_wrong_implications(data),
        *_wrong_violations(world, data),
        *_wrong_inconclusive(world, data),
        *_wrong_bound(world, data),
        *(_wrong_doubt(world, data) if data["doubt"] is not None else ()),
    ]


def _experiments(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [run for run in data["evidence"] if run["origin"] == "injected"]


def _wrong_rechecks(world: World, data: dict[str, Any]) -> Iterator[str]:
    """Report runs that are marked as re-checks and were none, and the other way round."""
    known: set[frozenset[str]] = set()
    tried = violated = 0
    for reading in world.learned():
        run = reading.run
        if run["origin"] != "injected":
            continue
        recheck = False
        if run["good"] is not None and reading.injected not in known:
            known.add(reading.injected)
            touched = world.language.expand(reading.injected) | world.language.down
            recheck = world.safe(touched) and not world.fails(touched)
        tried += recheck
        violated += recheck and not run["good"]
        if run["recheck"] != recheck:
            yield f"run {reading.number} is {'a' if recheck else 'no'} re-check, and says otherwise"
    if data["rechecks"] != {"tried": tried, "violated": violated}:
        yield f"{tried} sets were re-checked and {violated} of them failed; it says otherwise"
    if data["experiments"] != len(_experiments(data)):
        yield f"{len(_experiments(data))} experiments are listed, not {data['experiments']}"


def _wrong_runs(data: dict[str, Any], effort: Effort) -> Iterator[str]:
    """Report runs that contradict themselves, and such as are not as firm as they say."""
    believed, doubted = data["axioms"]["believed"], data["doubt"] is not None
    if not doubted and believed != {"survived": 1, "failed": 1}:
        yield "what is believed only when seen again is doubted, and there is no word of doubt"
    runs = _experiments(data)
    survived = Counter(frozenset(run["injected"]) for run in runs if run["good"])
    hurt = {frozenset(run["injected"]) for run in runs if run["good"] is False}
    failures = Counter(frozenset(run["failed"]) for run in runs if run["good"] is False)
    for run in runs:
        number, injected = run["number"], frozenset(run["injected"])
        if not run["good"] and run["support"] is not None:
            yield f"run {number} was not good, and says what its success relied on"
        if run["firm"] is False:
            if not doubted or run["good"] is None:
                yield f"run {number} cannot be other than firm"
        elif run["good"]:
            if survived[injected] < believed["survived"] or (doubted and injected in hurt):
                yield f"run {number} is not firm: the same was not survived often enough"
        elif run["good"] is False and believed["failed"] > 1:
            fired = frozenset(run["failed"])
            effort.spend(len(failures))
            if sum(n for each, n in failures.items() if each <= fired) < believed["failed"]:
                yield f"run {number} is not firm: it was not seen to fail often enough"
        if isinstance(run["firm"], list):
            yield from _wrong_reading(run, data)


def _wrong_reading(run: dict[str, Any], data: dict[str, Any]) -> Iterator[str]:
    """Report a firm reading of a run that has more in it than the run."""
    firm, possible = set(run["firm"]), {*run["failed"], *run["injected"]}
    for inside in data["axioms"]["language"]["domains"].values():
        if set(inside) <= firm and len(set(inside) - possible) == 1:
            possible.update(inside)  # a domain is down when all of its points are
    if data["doubt"] is None or not run["good"] or not firm <= possible or firm == {*run["failed"]}:
        yield f"run {run['number']} is not read as what it was"


def _wrong_implications(data: dict[str, Any]) -> Iterator[str]:
    """Report what one fault is said to bring about, and the run that is named does not show."""
    caused = {
        run["number"]: {(stronger, weaker) for stronger, weaker in run["caused"]}
        for run in _experiments(data)
    }
    known: set[tuple[str, str]] = set()
    for each in data["axioms"]["language"]["implications"]:
        pair = (each["stronger"], each["weaker"])
        if pair in known:
            yield f"{pair[0]} is said twice to bring {pair[1]} about"
        known.add(pair)
        if each["run"] is not None and pair not in caused.get(each["run"], ()):
            yield f"run {each['run']} does not show that {pair[0]} brings {pair[1]} about"


def contradicted(world: World) -> list[Reading]:
    """List the failed runs that a good one shows to be impossible."""
    down = world.language.down
    return [each for each in world.bad.values() if world.safe(each.points | down)]


def _wrong_violations(world: World, data: dict[str, Any]) -> Iterator[str]:
    """Report contradictions to "more faults never help" that are not listed, or are none."""
    found: list[tuple[str, frozenset[str]]] = []
    known: set[frozenset[str]] = set()
    shown = {*world.clause_of, *world.survived}
    good = [each for each in world.readings if each.number in shown]
    for each in contradicted(world):
        fired = frozenset(each.failed)
        if fired not in known:
            known.add(fired)
            world.effort.spend(len(good))
            over = [
                other.failed
                for other in good
                if not each.points & ~(other.points | world.language.down)
            ]
            if over and world.monotone:
                found.append(("superset of a failing set survived", frozenset(over[0])))
            else:
                found.append(("known-safe set failed", fired))
    said = [(each["kind"], frozenset(each["faults"])) for each in data["violations"]]
    if Counter(said) != Counter(found):
        yield f"{len(found)} contradictions in the evidence are not the {len(said)} it lists"


def _undecided(world: World, faults: frozenset[str]) -> bool:
    """Return whether these may be tried and no run decides them."""
    touched = world.language.expand(faults) | world.language.down
    return (
        world.language.admissible(world.language.bits(faults))
        and not world.fails(touched)
        and not world.safe(touched)
    )


def _wrong_inconclusive(world: World, data: dict[str, Any]) -> Iterator[str]:
    """Report sets tried in vain that are not listed, or were not tried so often."""
    tried = Counter(frozenset(run["injected"]) for run in _experiments(data))
    vain = {faults: count for faults, count in tried.items() if _undecided(world, faults)}
    said = [(frozenset(each["faults"]), each["attempts"]) for each in data["inconclusive"]]
    if len(said) != len(dict(said)) or dict(said) != vain:
        yield f"{len(vain)} sets were tried in vain, and it lists others, or other numbers"


def _wrong_bound(world: World, data: dict[str, Any]) -> Iterator[str]:
    """Report a lower bound that does not follow."""
    bound, language = data["lower_bound"], world.language
    minimal = {language.expand(each) | language.down for each in data["minimal_failing_sets"]}
    world.effort.spend(len(minimal) ** 2)
    exact = [one for one in minimal if not any(other & one == other != one for other in minimal)]
    packing = [language.bits(each) for each in bound["packing"]]
    touched = [language.touched(each) for each in packing]
    natural = [each.points for each in world.clauses if each.natural]
    world.effort.spend(len(packing) * (len(packing) * (1 + len(world.bad)) + len(natural)))
    for place, one in enumerate(packing):
        said = ", ".join(bound["packing"][place])
        largest = data["axioms"]["bounds"]["max_size"]
        if not language.admissible(one) or (largest is not None and one.bit_count() > largest):
            yield f"{{{said}}} in the lower bound's packing is beyond the bounds"
        if not world.safe(touched[place]) or world.fails(touched[place]):
            yield f"{{{said}}} in the lower bound's packing is not a safe set"
        if not all(points & touched[place] for points in natural):
            yield f"{{{said}}} in the lower bound's packing needs no experiment"
        if not all(world.fails(touched[place] | other) for other in touched[:place]):
            yield f"{{{said}}} in the lower bound's packing may share a good run with another"
    if packing and not world.monotone:
        yield "where more faults may help, no packing bounds the experiments"
    total = len(exact) + len(packing)
    if (bound["failing"], bound["total"]) != (len(exact), total):
        yield f"the lower bound is {len(exact)} + {len(packing)}, not {bound['total']}"
    tried = data["experiments"] - data["rechecks"]["tried"]
    ratio = round(tried / total, 4) if total else None
    if bound["ratio"] != ratio:
        yield f"the ratio to the lower bound is {ratio}, not {bound['ratio']}"


def _wrong_doubt(world: World, data: dict[str, Any]) -> Iterator[str]:
    """Report statements on doubt that do not follow from the runs."""
    doubt, runs = data["doubt"], _experiments(data)
    survived = Counter(frozenset(run["injected"]) for run in runs if run["good"])
    once = sum(count == 1 for count in survived.values())
    if (doubt["survived"], doubt["survived_once"]) != (len(survived), once):
        yield f"{len(survived)} sets were survived, {once} of them once; it says otherwise"
    shaky = sum(not _undecided(world, frozenset(each)) for each in data["open"])
    if doubt["tried_once"] != shaky:
        yield f"{shaky} hypotheses are open only because of doubt, not {doubt['tried_once']}"
    possible, certain = set(), set()
    for each in contradicted(world):
        possible.add(each.injected)
        if not _settled(world, data, each, survived):
            certain.add(each.injected)
    unsettled = set(map(frozenset, doubt["unsettled"]))
    if not certain <= unsettled <= possible:
        yield "the contradictions that are unsettled are not those it lists"
    if unsettled and data["open_complete"]:
        yield "contradictions are unsettled, so nobody knows what is open"


def _settled(
    world: World, data: dict[str, Any], harm: Reading, survived: Counter[frozenset[str]]
) -> bool:
    """Return whether both sides of a contradiction were seen more than once."""
    world.effort.spend(len(world.bad) + len(world.readings))
    fired = frozenset(harm.failed)
    witnesses = sum(fired.issuperset(each.failed) for each in world.bad.values())
    if witnesses < min(TWICE, data["axioms"]["believed"]["failed"]):
        return False
    touched = harm.points | world.language.down
    return not any(
        each.run["origin"] == "injected"
        and survived[each.injected] == 1
        and world.shows(each.number, touched)
        for each in world.readings
    )
