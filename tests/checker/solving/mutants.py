"""Ways to make a certificate wrong: field by field, and rule by rule."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

Document = dict[str, Any]
Mutation = Callable[[Document, random.Random], object]


def mutant(document: Document, rng: random.Random) -> tuple[str, Document]:
    """One mutant, with the name of what was done to it."""
    changed = copy.deepcopy(document)
    for _ in range(20):
        name = rng.choice([*RULES, *["a field"] * len(RULES)])
        try:
            what = _field(changed, rng) if name == "a field" else RULES[name](changed, rng)
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError):
            changed = copy.deepcopy(document)
            continue
        if changed != document:
            return f"{name} {what if name == 'a field' else ''}", changed
    return "nothing", changed


def places(value: Any, path: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Every place of a document: what holds it, its key there, and its path."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        here = f"{path}.{key}" if isinstance(key, str) else f"{path}[]"
        yield value, key, here
        if isinstance(each, dict | list):
            yield from places(each, here)


def _field(document: Document, rng: random.Random) -> str:
    """Change one field; each path is as likely as any other, however many runs there are."""
    every: dict[str, list[tuple[Any, Any]]] = {}
    for holder, key, path in places(document):
        every.setdefault(path, []).append((holder, key))
    path = rng.choice(sorted(every))
    holder, key = rng.choice(every[path])
    holder[key] = _other(holder[key], document, rng)
    if rng.random() < 0.15:
        del holder[key]
    return path


def _other(value: Any, document: Document, rng: random.Random) -> Any:
    names = document["axioms"]["language"]["faults"] or ["a"]
    odd: list[Any] = [
        None,
        True,
        "x",
        -1,
        0,
        10**30,
        float("nan"),
        float("inf"),
        [],
        {},
        [[]],
        "?",
        "f0",
    ]
    if rng.random() < 0.2:
        return rng.choice(odd)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return max(0, value + rng.choice([-2, -1, 1, 2]))
    if isinstance(value, float):
        return value * rng.choice([0.5, 1.01, 2])
    if isinstance(value, str):
        return rng.choice(names)
    if isinstance(value, list):
        return _other_list(value, names, rng)
    if isinstance(value, dict):
        more = {**value, rng.choice([*names, "more"]): rng.choice([1, [rng.choice(names)], None])}
        fewer = dict(rng.sample(sorted(value.items()), max(0, len(value) - 1)))
        return rng.choice([more, fewer])
    return rng.choice([0, 1, True, False, [], names[:1], 1.0])


def _other_list(value: list[Any], names: list[str], rng: random.Random) -> list[Any]:
    changed = list(value)
    way = rng.randrange(5)
    if way == 0 and changed:
        changed.pop(rng.randrange(len(changed)))
    elif way == 1 and changed:
        changed.append(rng.choice(changed))
    elif way == 2 and len(changed) > 1:
        rng.shuffle(changed)
    else:
        new: Any = rng.choice(names)
        if changed and isinstance(changed[0], list):
            new = sorted(rng.sample(names, min(len(names), rng.randint(0, 2))))
        elif changed and isinstance(changed[0], int):
            new = rng.randint(1, 9)
        changed.insert(rng.randint(0, len(changed)), new)
    return changed


def _names(document: Document) -> list[str]:
    names: list[str] = document["axioms"]["language"]["faults"]
    return names


def _strike(document: Document, rng: random.Random) -> None:
    names = _names(document)
    names.remove(rng.choice(names))


def _effect_everywhere(document: Document, rng: random.Random) -> None:
    """Take a fault out of the language and of every list of names; only steps still know it."""
    name = rng.choice(_names(document))
    for holder, key, _ in list(places(document)):
        value = holder[key] if isinstance(holder, dict) or key < len(holder) else None
        if isinstance(value, list) and name in value:
            value.remove(name)
        elif isinstance(value, dict):
            value.pop(name, None)


def _move(one: str, other: str) -> Mutation:
    def move(document: Document, rng: random.Random) -> None:
        document[other].append(document[one].pop(rng.randrange(len(document[one]))))

    return move


def _file_as_larger(document: Document, rng: random.Random) -> None:
    """Whole: out of the findings and the minimal sets, with the proofs and a run to convict it."""
    place = rng.randrange(len(document["minimal_failing_sets"]))
    faults = document["minimal_failing_sets"].pop(place)
    proof = document["derivation"]["minimal"].pop(place)
    document["findings"] = [each for each in document["findings"] if each != faults]
    document["larger_findings"].append(faults)
    document["derivation"]["larger"].append(proof["run"])
    bound = document["lower_bound"]
    bound["failing"] -= 1
    bound["total"] -= 1
    tried = document["experiments"] - document["rechecks"]["tried"]
    bound["ratio"] = round(tried / bound["total"], 4) if bound["total"] else None
    steps = document["derivation"]["steps"]
    for position, step in enumerate(steps):
        if isinstance(step, str) and step.startswith("f"):
            number = int(step[1:])
            steps[position] = proof["run"] if number == place else f"f{number - (number > place)}"


def _hide_open(document: Document, rng: random.Random) -> None:
    """Drop an open hypothesis, and have some run decide it."""
    place = rng.randrange(len(document["open"]))
    document["open"].pop(place)
    for steps in (document["derivation"]["steps"], document["derivation"]["firm"] or []):
        for position, step in enumerate(steps):
            if isinstance(step, str) and step.startswith("o"):
                number = int(step[1:])
                run = rng.randint(1, len(document["evidence"]))
                steps[position] = run if number == place else f"o{number - (number > place)}"


def _invent_implication(document: Document, rng: random.Random) -> None:
    stronger, weaker = rng.sample(_names(document), 2)
    run = rng.choice([None, rng.randint(1, len(document["evidence"]))])
    document["axioms"]["language"]["implications"].append(
        {"stronger": stronger, "weaker": weaker, "run": run}
    )


def _invent_domain(document: Document, rng: random.Random) -> None:
    name, *inside = rng.sample(_names(document), 3)
    document["axioms"]["language"]["domains"][name] = inside


def _invent_known_domain(document: Document, rng: random.Random) -> None:
    document["axioms"]["language"]["faults"].append("Z")
    document["axioms"]["language"]["domains"]["Z"] = rng.sample(_names(document)[:-1], 2)


def _flip(field: str) -> Mutation:
    def flip(document: Document, _rng: random.Random) -> None:
        document["axioms"][field] = not document["axioms"][field]

    return flip


def _runs(document: Document, **like: Any) -> list[Document]:
    return [r for r in document["evidence"] if all(r.get(k) == v for k, v in like.items())]


def _shorten_support(document: Document, rng: random.Random) -> None:
    run = rng.choice([r for r in document["evidence"] if r["support"]])
    run["support"].remove(rng.choice(run["support"]))


def _turn_verdict(document: Document, rng: random.Random) -> None:
    run = rng.choice(_runs(document, origin="injected"))
    run["good"] = not run["good"]
    run["support"] = None if rng.random() < 0.5 or not run["good"] else []


def _drop_run(document: Document, rng: random.Random) -> None:
    runs = document["evidence"]
    runs.pop(rng.randrange(len(runs)))
    for number, run in enumerate(runs, 1):
        run["number"] = number


def _forge_rechecks(document: Document, rng: random.Random) -> None:
    run = rng.choice(_runs(document, origin="injected"))
    run["recheck"] = not run["recheck"]
    document["rechecks"]["tried"] += 1 if run["recheck"] else -1
    bound = document["lower_bound"]
    tried = document["experiments"] - document["rechecks"]["tried"]
    bound["ratio"] = round(tried / bound["total"], 4) if bound["total"] else None


def _cut_steps(document: Document, rng: random.Random) -> None:
    steps = document["derivation"]["steps"]
    del steps[rng.randrange(len(steps)) :]


def _other_step(document: Document, rng: random.Random) -> None:
    steps = rng.choice([document["derivation"]["steps"], document["derivation"]["firm"] or [0]])
    every = [rng.randint(1, len(document["evidence"])), f"f{rng.randrange(3)}", "o0", "?", "b1"]
    steps[rng.randrange(len(steps))] = rng.choice(every)


def _larger_bounds(document: Document, rng: random.Random) -> None:
    bounds = document["axioms"]["bounds"]
    bounds["max_size"] = rng.choice([None, 0, -1, bounds["max_size"] + 1])


def _fewer_bounds(document: Document, rng: random.Random) -> None:
    bounds = document["axioms"]["bounds"]
    field = rng.choice([each for each in ("protected", "exclusions", "down") if bounds[each]])
    bounds[field].pop()


def _all_firm(document: Document, rng: random.Random) -> None:
    rng.choice(_runs(document, firm=False))["firm"] = True


def _no_doubt(document: Document, _rng: random.Random) -> None:
    document["doubt"] = None
    document["axioms"]["believed"] = {"survived": 1, "failed": 1}


def _better_bound(document: Document, rng: random.Random) -> None:
    bound = document["lower_bound"]
    bound["packing"].append(sorted(rng.sample(_names(document), rng.randint(0, 2))))
    bound["total"] += 1
    tried = document["experiments"] - document["rechecks"]["tried"]
    bound["ratio"] = round(tried / bound["total"], 4)


RULES: dict[str, Mutation] = {
    "a fault struck from the language": _strike,
    "a fault struck from everything": _effect_everywhere,
    "a finding filed as larger": _move("findings", "larger_findings"),
    "a finding filed as larger, with its proof": _file_as_larger,
    "a finding that is open": _move("findings", "open"),
    "something open hidden": _hide_open,
    "something open found": _move("open", "findings"),
    "an implication invented": _invent_implication,
    "a domain invented": _invent_domain,
    "a new domain": _invent_known_domain,
    "deterministic": _flip("deterministic"),
    "monotone": _flip("monotone"),
    "a support cut short": _shorten_support,
    "a verdict turned": _turn_verdict,
    "a run dropped": _drop_run,
    "re-checks forged": _forge_rechecks,
    "steps cut off": _cut_steps,
    "another step": _other_step,
    "larger bounds": _larger_bounds,
    "fewer bounds": _fewer_bounds,
    "more of it firm": _all_firm,
    "no word of doubt": _no_doubt,
    "a better bound": _better_bound,
    "complete": lambda d, _: d.update(open_complete=not d["open_complete"]),
    "not a number": lambda d, _: d["lower_bound"].update(ratio=float("nan")),
    "fewer experiments": lambda d, _: d.update(experiments=d["experiments"] - 1),
    "a better ratio": lambda d, _: d["lower_bound"].update(ratio=9.0),
    "no bounds": lambda d, _: d["axioms"].pop("bounds"),
    "another format": lambda d, _: d.update(format="x"),
    "a finding left out": lambda d, rng: d["findings"].pop(rng.randrange(len(d["findings"]))),
    "a set in the packing out of nowhere": lambda d, _: d["lower_bound"]["packing"].append(["d"]),
}
