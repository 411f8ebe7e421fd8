"""A service's chain of runs, made up of drawn outcomes: they are judged by the service's own tests,
and then written down, hashed and signed as the service does it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ldfi.checker import merkle
from ldfi.checker.certificate_signature import Certified
from ldfi.checker.head import (
    CertificateTree,
    Head,
    PublicKey,
    SigningKey,
    counts_root,
    public_keys,
)
from ldfi.checker.record import Arms, Rested, RunRecord
from ldfi.checker.statistics import JudgingRule
from ldfi.checker.verdict_check import counts
from ldfi.experiments.domain.judging.sequential_tests import SequentialTests
from ldfi.experiments.domain.settings import Thresholds

CLASSES = (("GET /boot", 1), ("GET /boot", 2), ("GET /play/*", 1))
DAY = 86_400.0
START = 1_000_000.0
POINTS = ("a", "b", "c", "d")
Form = Callable[[dict[str, Any]], dict[str, Any]]
"""Writes a certificate in one of its formats."""


def key_pem() -> str:
    """A new private key in PEM."""
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def trusted(*keys: SigningKey) -> tuple[PublicKey, ...]:
    """What whoever checks has of these keys."""
    return tuple(public for key in keys for public in public_keys(key.public_pem()))


@dataclass
class Chain:
    """Records in the order of their leaves, and who signs."""

    keys: list[SigningKey] = field(default_factory=lambda: [SigningKey(key_pem())])
    records: list[RunRecord] = field(default_factory=list)
    certified: CertificateTree | None = None
    """Of the document that was made last."""

    def node(self) -> merkle.Node:
        return merkle.lookup([each.leaf for each in self.records])

    def head(self, size: int | None = None, time: float | None = None) -> Head:
        """Sign the head of the first so many leaves."""
        size = len(self.records) if size is None else size
        known = self.records[:size]
        runs: dict[tuple[str, int], int] = {}
        for each in known:
            runs[each.request_class, each.version] = each.number
        last = max((each.ended for each in known), default=START)
        root = merkle.root(size, self.node())
        at = last if time is None else time
        bare = Head(size, root, at, runs, counts=counts_root(runs), certificates=self.certified)
        return bare.signed_by(self.keys)

    def document(
        self, since: int | None = None, head: Head | None = None, form: Form = dict
    ) -> dict[str, Any]:
        """What ``ldfi certificate get`` writes, with certificates in this form."""
        size, node = len(self.records), self.node()
        classes: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for index, each in enumerate(self.records):
            path = [one.hex() for one in merkle.inclusion(index, size, node)]
            leaf = {"index": index, "record": each.to_json(), "path": path}
            classes.setdefault((each.request_class, each.version), []).append(leaf)
        grown = [] if since is None else [self.grown(since)]
        entries = [
            {
                "request_class": name,
                "version": version,
                "certificate": form(certificate([leaf["record"] for leaf in runs])),
                "runs": runs,
                "unsigned": [],
            }
            for (name, version), runs in sorted(classes.items())
        ]
        self.certified = certify(entries)
        return {
            "format": "ldfi-evidence/1",
            "head": (head or self.head()).to_json(),
            "grown": grown,
            "classes": entries,
        }

    def sign(self, document: dict[str, Any]) -> dict[str, Any]:
        """Sign anew what was changed in the certificates of a document: a service that errs."""
        self.certified = certify(document["classes"])
        return {**document, "head": self.head().to_json()}

    def grown(self, since: int) -> dict[str, Any]:
        path = merkle.consistency(since, len(self.records), self.node())
        return {"from": since, "path": [each.hex() for each in path]}


def certify(entries: list[dict[str, Any]]) -> CertificateTree:
    """Make each certificate a leaf, and write into its entry the proof that it is one."""
    made = [Certified(f"c{place}", {"delta": 0.3}, START, place) for place in range(len(entries))]
    leaves = [
        mine.leaf((each["request_class"], each["version"]), each["certificate"])
        for mine, each in zip(made, entries, strict=True)
    ]
    node = merkle.lookup(leaves)
    for mine, each in zip(made, entries, strict=True):
        path = tuple(merkle.inclusion(mine.place, len(leaves), node))
        each["certified"] = replace(mine, path=path).to_json()
    return CertificateTree(len(leaves), merkle.root_of(leaves))


def certificate(records: list[dict[str, Any]]) -> dict[str, Any]:
    """As much of a certificate as tells of runs: what these records showed."""
    good = [
        {
            "origin": "injected",
            "failed": each["fired"],
            "support": each["relied_on"],
            "count": 1,
            "traces": [trace for trace, _ in each["traces"]["named"]],
        }
        for each in records
        if each["verdict"] == "tolerated"
    ]
    bad = [
        {
            "fired": each["fired"],
            "count": 1,
            "traces": [trace for trace, _ in each["traces"]["named"]],
        }
        for each in records
        if each["verdict"] == "harmful"
    ]
    faults = [f"{kind}@{point}" for kind in ("error", "delay") for point in POINTS]
    return {"language": {"faults": faults}, "evidence": {"good": good, "bad": bad}}


def chain(rng: random.Random, size: int) -> Chain:
    """Draw a service's life so far: runs of three class versions, some hurt and some do not."""
    made, now = Chain(), START
    for index in range(size):
        now += rng.uniform(60, DAY)
        made.records.append(record(rng, made.records, index, now))
    return made


def record(rng: random.Random, before: list[RunRecord], index: int, ended: float) -> RunRecord:
    """Draw a run, judged by the service's own tests."""
    name, version = rng.choice(CLASSES)
    rates = rng.choice([(0.02, 0.95), (0.02, 0.02), (0.3, 0.5)])
    order = "".join(_outcome(rng, rates) for _ in range(rng.randint(20, 60)))
    given = Thresholds(alpha_harmful=0.05, alpha_tolerated=0.2, delta=0.3, min_samples=3)
    tests = SequentialTests(given, 2.0)
    for letter in order:
        tests.add(treated=letter in "tTd", failed=letter in "CT")
    fired = (f"error@{rng.choice(POINTS)}",)
    traces = [
        (f"{index:04x}{n:028x}", letter, f"{rng.getrandbits(256):064x}")
        for n, letter in enumerate(order)
    ]
    named = tuple(trace for trace, letter, _ in traces if letter in "tTd")[:5]
    draft = RunRecord(
        experiment=f"run{index}",
        request_class=name,
        version=version,
        number=1 + sum((each.request_class, each.version) == (name, version) for each in before),
        purpose="explore",
        hypothesis=fired,
        faults=fired,
        state="decided",
        verdict=tests.final(),
        overruled=None,
        reason="evidence",
        began=ended - rng.uniform(1, 50),
        ended=ended,
        rule=JudgingRule("sequential", 0.05, 0.2, 0.3, 3, 2.0),
        own=0.05,
        level=0.002,
        slot="first",
        opening=None,
        order=order,
        looks=None,
        arms=Arms(0, 0, 0, 0),
        worse=tests.log_worse,
        not_worse=tests.log_not_worse,
        fired=fired,
        relied_on=("error@d", "delay@d"),
        degraded=False,
        traces=Rested.on(traces, named),
        followed=0.0,
    )
    return replace(draft, arms=counts(draft))


def _outcome(rng: random.Random, rates: tuple[float, float]) -> str:
    treated = rng.random() < 0.3
    return ("cC", "tT")[treated][rng.random() < rates[treated]]


def second(first: dict[str, Any]) -> dict[str, Any]:
    """The same in the second format: one list of runs, each with its number."""
    good = [{**run, "good": True} for run in first["evidence"]["good"]]
    bad = [
        {
            "origin": "injected",
            "failed": run["fired"],
            "support": None,
            "traces": run["traces"],
            "good": False,
        }
        for run in first["evidence"]["bad"]
    ]
    runs = [{"number": n, **run} for n, run in enumerate([*good, *bad], 1)]
    for run in runs:
        run.pop("count", None)
    return {"axioms": {"language": first["language"]}, "evidence": runs}
