"""Write ``fit/protocol/vectors/edge.json``: what edges in other languages do as Python's does.

    python -m tests.fit.edge_vectors

Nothing in there is thought up: each answer is what the code in Python says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from ldfi.fit import baggage
from ldfi.fit.protocol import allocation
from ldfi.fit.protocol.allowance import Allowances, written
from ldfi.fit.protocol.context import Arm, encode
from ldfi.fit.protocol.errors import MalformedContext, MalformedRules
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.features import request_features
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.notation import length_of
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.fit.protocol.rules import Rule, read_lease

FILE: Final = Path(__file__).parents[2] / "ldfi" / "fit" / "protocol" / "vectors" / "edge.json"
KEYS: Final = "k1:0123456789abcdef,k0:fedcba9876543210"
ABOUT: Final = (
    "What an edge does (docs/edge.md), as fit in Python does it; written by "
    "tests/fit/edge_vectors.py. marks: 64 bits of a device. leases: rules, and for each device "
    "the claims (experiment and arm); null for rules that are not understood. features: what is "
    "read of a request whose body is not. contexts: what is signed under the first of keys; null "
    "for what cannot be. lengths: how many milliseconds are drawn. baggage: our values in a "
    "header, and what is left without them. allowances: what is asked of one edge, and answered."
)
POINTS: Final = (
    *("api>http:GET:ratings/titles/*", "api>http:POST:ratings/titles/*", "api>db:SELECT:shop/m"),
    *("api>rpc:Get:prices/shop.Prices", "\u5e93\u5b58>http:GET:s/", "\U0001f600>db:GET:s"),
    "a\uff5e>db:GET:s",
)
KINDS: Final = (
    *("error", "delay", "refused", "reset", "timeout", "empty", "status:503", "grpc:UNAVAILABLE"),
    *("sql:deadlock", "redis:loading", "exception:KeyError", "delay:0.5..2"),
    *("delay:p50=0.8..p99=3", "delay:0..0.01", "slow:2", "slow:0.5..2"),
)


def vectors() -> dict[str, Any]:
    """Make all of them, always the same ones."""
    draw = Random(20)
    devices = [f"device-{n}" for n in range(40)] + ["", "kim", "d\xe9j\xe0", "x" * 127, "y" * 128]
    devices += ["z" * 129, "w" * 400, "\U0001f4f1"]
    return {
        "about": ABOUT,
        "marks": [{"device": each, "mark": f"{allocation.mark_of(each):016x}"} for each in devices],
        "leases": [_lease(document, devices) for document in _documents(draw)],
        "features": [_features(case) for case in _requests(draw)],
        "keys": KEYS,
        "contexts": [_context(case) for case in _contexts(draw)],
        "lengths": list(_lengths()),
        "baggage": [
            {"header": each, "values": baggage.values(each), "without": baggage.without(each)}
            for each in HEADERS
        ],
        "allowances": [_history(draw) for _ in range(12)],
    }


def _lease(document: dict[str, Any], devices: list[str]) -> dict[str, Any]:
    try:
        lease = read_lease(document, asked_at=0.0)
    except MalformedRules:
        return {"document": document, "lease": None}
    claims = {}
    for device in devices:
        found = lease.claims(allocation.mark_of(device))
        if found:
            claims[device] = [[rule.experiment, arm] for rule, arm in found]
    told = {"seconds": lease.ends, "wanted": sorted(lease.wanted), "claims": claims}
    return {"document": document, "lease": told}


def _rule(draw: Random, experiment: str, yields_to: tuple[Rule, ...] = ()) -> Rule:
    treatment = round(draw.choice([0.0, 0.01, 0.1, 0.3, 0.5, draw.random()]), 6)
    control = round(draw.choice([0.0, 1.0, draw.random()]) * (1 - treatment), 6)
    conditions = draw.sample(CONDITIONS, draw.randrange(4))
    faults = [
        Fault(draw.choice(POINTS), draw.choice(KINDS), draw.choice([0, 0, 1, 99])) for _ in range(2)
    ]
    return Rule(
        experiment,
        f"salt-{experiment}-\xe9",
        Predicate.of(conditions),
        treatment,
        min(control, 1 - treatment),
        tuple(faults),
        delay_ms=draw.randrange(1, 10_000),
        members=draw.choice([None, 0, 3]),
        yields_to=tuple(each.claim for each in yields_to),
    )


def _documents(draw: Random) -> Iterator[dict[str, Any]]:
    for _ in range(15):
        rules: list[Rule] = []
        for number in range(draw.randrange(5)):
            rules.append(_rule(draw, f"e{number}", tuple(draw.sample(rules, len(rules) // 2))))
        seconds = draw.choice([0, 1.5, 10, 60, 3600])
        yield _document([each.to_json() for each in rules], lease_seconds=seconds)
    good = _rule(draw, "e1").to_json()
    older = {name: good[name] for name in good if name not in ("members", "yields_to")}
    yield _document([older])
    yield _document([good, good])
    for name, value in BROKEN:
        yield _document([{**good, name: value}])
        if name not in ("members", "yields_to"):
            yield _document([{each: good[each] for each in good if each != name}])
    for more in ({"version": 7}, {"version": "v" * 65}, {"lease_seconds": "10"}, {"rules": None}):
        yield {**_document([]), **more}
    yield _document([], lease_seconds=-1)


def _document(rules: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"version": "v1", "lease_seconds": 10, "rules": rules, **more}


CONDITIONS: Final = (
    Condition("method", "GET"),
    Condition("route", "/titles/*"),
    Condition("path", "/titles/*", negated=True),
    Condition("query.page"),
    Condition("query.page", negated=True),
    Condition("header.x-plan", "gold"),
    Condition("cookie.ab", "new", negated=True),
    Condition("graphql.operation", "Home", negated=True),
    Condition("device", "phone"),
    Condition("shoe-size", "42", negated=True),
)
_CONDITION: Final = {"feature": "path", "value": "/", "negated": False}
BROKEN: Final[tuple[tuple[str, Any], ...]] = (
    *(("experiment", each) for each in ("", "a b", "x" * 65, None, 7)),
    *(("salt", each) for each in (None, 7)),
    *(("treatment", each) for each in (-0.1, 1.1, "1", True, None)),
    ("control", 1.0),
    *(("predicate", None), ("predicate", "x"), ("predicate", [[]]), ("predicate", [{}])),
    *(("predicate", [7]), ("predicate", [None])),
    *(("predicate", [{**_CONDITION, name: 7}]) for name in ("feature", "value", "negated")),
    ("predicate", [{**_CONDITION, "value": None}]),
    *(("faults", None), ("faults", "error@x"), ("faults", [7])),
    *(("faults", [each]) for each in ("error", "error@", "odd@x")),
    *(("faults", [f"{each}@x"]) for each in ("error:0", "error:100", "status:600", "grpc:no")),
    *(("faults", [f"{each}@x"]) for each in ("delay:2..1", "delay:0.50..2", "delay:3", "delay:")),
    *(("faults", [f"{each}@x"]) for each in ("status:503:2", "delay:0.5..2:7", "timeout:1", "@")),
    *(
        ("faults", [f"{each}@x"])
        for each in ("error:", "refused:x", "status", "delay:-1", "__proto__")
    ),
    *(("delay_ms", each) for each in (-1, 1.5, 10_000_000, None)),
    *(("members", each) for each in (-1, 1.5, "3", True)),
    *(
        ("yields_to", each)
        for each in (None, 7, [7], [{"salt": "s", "treatment": 0.5, "control": 0.6}])
    ),
)


def _requests(draw: Random) -> Iterator[dict[str, Any]]:
    for _ in range(150):
        pairs = [
            draw.choice(NAMES) + draw.choice(["=", "=", "=", ""]) + draw.choice(VALUES)
            for _ in range(draw.randrange(5))
        ]
        yield _request("GET", draw.choice(PATHS), "&".join(pairs))
    for agent in AGENTS:
        yield _request("get", "/t", "", ("user-agent", agent))
    for header in TOLD:
        yield _request("POST", "/t", "", header)
    yield _request("GET", "/t", "", ("content-type", "application/json"))
    yield _request("GET", "/t", "&".join(f"p{n}=v" for n in range(30)))
    yield _request("GET", "/" + "x/" * 1500, "")
    paths = [[f"k{letter}", [f"m{letter}", "n", 1]] for letter in "abcdefghijklmnopqrstuvwxyz" * 3]
    yield _request("GET", "/t", f"paths={json.dumps(paths)}")
    yield _request("GET", "/t", f"path={json.dumps(paths[0])}&" * 30)


def _request(method: str, path: str, query: str, *headers: tuple[str, str]) -> dict[str, Any]:
    return {"method": method, "path": path, "query": query, "headers": [list(h) for h in headers]}


def _features(case: dict[str, Any]) -> dict[str, Any]:
    found = request_features(
        case["method"], case["path"], case["query"], map(tuple, case["headers"]), None, WANTED
    )
    return {**case, "wanted": sorted(WANTED), "features": dict(sorted(found.items()))}


WANTED: Final = frozenset(
    {"header.x-plan", "cookie.ab", "cookie.toString", "baggage.tenant", "query.page", "path"}
)
NAMES: Final = (
    *("page", "q", "path", "paths", "query", "operationName", "extensions", "%71", "a+b", "\xe9"),
    *("__proto__", "%C3%A9", "12345", "", "a.b"),
)
VALUES: Final = (
    *("1", "", "new", "a%20b", "a+b", "%", "%zz", "%C3%28", "%EF%BB%BFx", "%F0%9F%98%80", "x/y"),
    *("\xe9%C3%A9", "%f0%9f%98%80" * 13, "%f0%9f%98%80" * 24, "a" * 25, "b" * 24, "deadbeef01"),
    *("kim@example.org", "%ef%bd%9e", "%5b%22videos%22%2C1%5D", '["a.b",["c",7,"d"]]'),
    '[["videos",[1,2],["title","rating"]],["lolomo",{"from":0,"to":9},0,"name"]]',
    *('["videos",12', "[]", "[[]]", "[{}]", "null", "{ me { name } }", "query Home { me { id } }"),
    '{ a: films(first: 3, after: "x{") { id } ...F @skip(if: true) genres { id } }',
    "fragment F on Query { people { id } } mutation Add($x: [ID!]) { add(x: $x) { id } }",
    "%23 says%0Aquery { %22%22%22 doc %22%22%22 one two @live ... on T { three } four }",
    *("queryable", "flights", '{"persistedQuery":{"sha256Hash":"' + "ab" * 32 + '"}}'),
    *('{"persistedQuery":7}', "subscription", "Home", "user-123456"),
    '["\\ud83d\\ude00","\\uff5e",["\\ud83d\\ude00","\\uff5e","z"]]',
)
PATHS: Final = ("/t", "/titles/17/similar", "/a%20b", "/\xe9/x", "", "/a/b?c")
AGENTS: Final = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Mobile/15E148",
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) Mobile Safari/537.36",
    *("Mozilla/5.0 (Linux; Android 14; SM-X910) Safari/537.36", "curl/8.5", "Googlebot/2.1"),
    *("Mozilla/5.0 (SMART-TV; Tizen 6.0)", "Tizen Mobile", "Mozilla/5.0 (X11; CrOS x86_64)"),
    *("myapp/1.0", "AFTMM Build", "PlayStation 5", "\xe9tv", "tv\xe9", "my tv", "robots", ""),
    "a" * 600 + "bot",
)
TOLD: Final = (
    *(("x-plan", "gold"), ("x-plan", "g" * 30), ("cookie", "ab=new; session=s3cr3t; ab")),
    *(("cookie", "toString=1;ab=%C3%A9"), ("baggage", "tenant=a%20b;p=1,user=kim, tenant = z ")),
    *(("content-type", "application/json; charset=utf-8"), ("content-type", "text/plain")),
    *(("x-apollo-operation-name", "Home"), ("x-apollo-operation-name", "user-12345")),
    ("host", "x"),
)


def _contexts(draw: Random) -> Iterator[dict[str, Any]]:
    for number in range(60):
        faults = [
            Fault(draw.choice(POINTS), draw.choice(KINDS), draw.choice([0, 0, 1, 2, 99]))
            for _ in range(draw.randrange(7))
        ]
        draw.shuffle(faults)
        yield {
            "experiment": f"e{number}",
            "arm": draw.choice(["treatment", "control"]),
            "expires": draw.randrange(1_700_000_000, 1_900_000_000),
            "faults": [str(each) for each in faults],
            "delay_ms": draw.choice([1, 40, 1500, 10_000, 9_999_999]),
            "lot": f"salt\ndevice-{number}\n{number}" if number % 3 else "",
        }
    many = [f"error@api>http:GET:p{n}/" for n in range(400)]
    common = {"arm": "treatment", "expires": 1_800_000_000, "lot": ""}
    yield {"experiment": "e1", "faults": many, "delay_ms": 1, **common}
    yield {"experiment": "a b", "faults": [], "delay_ms": 1, **common}
    yield {"experiment": "e1", "faults": ["delay@x"], "delay_ms": 0, **common}
    yield {"experiment": "e1", "faults": ["delay@x"], "delay_ms": 10_000_000, **common}


def _context(case: dict[str, Any]) -> dict[str, Any]:
    faults = [Fault.parse(each) for each in case["faults"]]
    try:
        value: str | None = encode(
            Keys.parse(KEYS),
            case["experiment"],
            case["arm"],
            case["expires"],
            faults,
            delay_ms=case["delay_ms"],
            draw_key=case["lot"],
        )
    except MalformedContext:
        value = None
    return {**case, "value": value}


def _lengths() -> Iterator[dict[str, Any]]:
    for which in ("0.5..2", "0..0.01", "0.25..9999.99", "p50=0.8..p99=3", "p50=0.01..p99=9999"):
        fault = Fault(POINTS[0], f"delay:{which}")
        for number in range(60):
            draw_key = f"salt\nd{number}\n{number}"
            drawn = length_of(fault, 9_999_999, draw_key)
            yield {"fault": str(fault), "lot": draw_key, "milliseconds": drawn}


HEADERS: Final = (
    *("", "a=b", "fit=1.2", "a=b,fit=1.2,c=d", "a=b, fit = 1.2 ;p=q, c=d", "%66it=1.2", "FIT=1.2"),
    *("fit=1.2,fit=1.3", "fit2=1.2,a=fit=1", "fi%74+=1.2", "%C2%85fit=1", "%20fit%20=1", "%fit=1"),
    *("\x85fit=1", "\xa0fit=1", ",,", "f\xeft=1", "fit=", "a=b;fit=1", "%00fit=1", "%1cfit=1"),
)


def _history(draw: Random) -> list[dict[str, Any]]:
    """Draw what one edge is told and asked, and what it answers."""
    allowances, steps = Allowances(), []
    report: dict[str, Any] = {}
    names = ["e1", "e2", "e3"]
    members: dict[str, int | None] = {}
    for _ in range(60):
        doing = draw.choice(["renew", "admit", "admit", "admit", "admit", "report", "settle"])
        step: dict[str, Any] = {"do": doing}
        if doing == "renew":
            kept = draw.sample(names, draw.randrange(4))
            members = {each: draw.choice([None, 0, 1, 2, 5]) for each in sorted(kept)}
            step["members"] = members
            allowances.renew(_bare(each, limit) for each, limit in members.items())
        elif doing == "admit":
            arm: Arm = draw.choice(["treatment", "control"])
            step |= {
                "experiment": draw.choice(names),
                "arm": arm,
                "device": f"d{draw.randrange(9)}",
            }
            mark = allocation.mark_of(step["device"])
            step["knew"] = allowances.knows(step["experiment"], arm, mark)
            step["answer"] = allowances.admit(step["experiment"], arm, mark)
        elif doing == "report":
            report = allowances.report()
            step["answer"] = written(report)
        else:
            allowances.settle(report)
            report = {}
        step["urgent"] = allowances.urgent
        steps.append(step)
    return steps


def _bare(experiment: str, members: int | None) -> Rule:
    return Rule(experiment, experiment, Predicate(), 1.0, 0.0, (), members=members)


def text() -> str:
    """Write them, a line for each."""
    parts = []
    for name, value in vectors().items():
        if isinstance(value, list):
            lines = ",\n".join(f"    {json.dumps(each)}" for each in value)
            parts.append(f'  "{name}": [\n{lines}\n  ]')
        else:
            parts.append(f'  "{name}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
