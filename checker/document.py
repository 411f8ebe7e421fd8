"""The document that is checked: certificates, the runs they rest on, and the head of the tree.

    {"format": "ldfi-evidence/1",
     "head": {…} or null, "grown": [{"from": size, "path": [hash, …]}, …],
     "classes": [{"request_class": …, "version": …, "certificate": {…} or null,
                  "certified": {"campaign": …, "settings": {…}, "time": …, "place": …, "path": […]},
                  "runs": [{"index": …, "record": {…}, "path": [hash, …]}, …],
                  "pruned": {"checkpoint": {…}, "runs": [{"index": …, "leaf": hash, …}, …]},
                  "unsigned": [{"experiment": …, "verdict": …}, …]}, …]}

``index``: the leaf of the tree. ``certified``: whose the certificate is, and the proof that it is
the one that was signed (:mod:`ldfi.checker.certificate_signature`); files from before have none.
``unsigned``: runs of the class version that are on record and not in the tree, for they ended
before there was one. ``pruned``, where there are any: what is left of runs that were dropped by age
(:mod:`ldfi.checker.checkpoint`). Of tests there is no tree and no head: nobody signs their records,
which are listed all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ldfi.checker.certificate_signature import Certified
from ldfi.checker.checkpoint import Checkpoint, Remains
from ldfi.checker.fields import Fields, sha256
from ldfi.checker.head import ClassVersion, Head
from ldfi.checker.outcome import AnyRecord, record_from
from ldfi.checker.record import VERDICTS

FORMAT: Final = "ldfi-evidence/1"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A record, and the proof that it is in the tree."""

    index: int
    record: AnyRecord
    path: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ClassEvidence:
    """What one certificate rests on. ``unsigned``: ids of runs from before the tree. ``pruned``:
    what is left of runs that were dropped; ``checkpoint``: who says so. ``certified``: the proof
    that the certificate was signed."""

    request_class: str
    version: int
    certificate: Mapping[str, Any] | None
    runs: tuple[Leaf, ...]
    unsigned: tuple[str, ...]
    pruned: tuple[Remains, ...] = ()
    checkpoint: Checkpoint | None = None
    certified: Certified | None = None

    @property
    def class_version(self) -> ClassVersion:
        """Return which version of which class it is of."""
        return self.request_class, self.version

    @property
    def name(self) -> str:
        """Name it to people."""
        return f"{self.request_class} (version {self.version})"


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """``grown``: for sizes of earlier heads, the proof that the tree grew from there."""

    head: Head | None
    grown: Mapping[int, tuple[bytes, ...]]
    classes: tuple[ClassEvidence, ...]

    @classmethod
    def from_json(cls, value: Any) -> EvidenceFile:
        """Read a document. Raises Unreadable for what is none."""
        data = Fields(value, "the document")
        data.text("format", (FORMAT,))
        document = cls(
            head=Head.from_json(data.take("head")) if data.has("head") else None,
            grown=dict(data.many("grown", _grown)),
            classes=data.many("classes", _class),
        )
        data.done()
        return document

    def leaves(self) -> Iterator[Leaf]:
        """List all runs."""
        for each in self.classes:
            yield from each.runs


def _grown(value: Any, where: str) -> tuple[int, tuple[bytes, ...]]:
    data = Fields(value, where)
    found = data.whole("from"), data.many("path", sha256)
    data.done()
    return found


def _class(value: Any, where: str) -> ClassEvidence:
    data = Fields(value, where)
    certificate = data.take("certificate") if data.has("certificate") else None
    pruned, checkpoint = _pruned(data.inner("pruned")) if data.has("pruned") else ((), None)
    signed = data.take("certified") if data.has("certified") else None
    found = ClassEvidence(
        request_class=data.text("request_class"),
        version=data.whole("version"),
        certificate=None if certificate is None else _object(certificate, where),
        runs=data.many("runs", _leaf),
        unsigned=data.many("unsigned", _unsigned),
        pruned=pruned,
        checkpoint=checkpoint,
        certified=None if signed is None else Certified.from_json(signed, f"{where}: certified"),
    )
    data.done()
    return found


def _object(value: Any, where: str) -> Mapping[str, Any]:
    Fields(value, f"{where}: certificate")
    read: Mapping[str, Any] = value
    return read


def _leaf(value: Any, where: str) -> Leaf:
    data = Fields(value, where)
    record = record_from(data.take("record"), f"{where}: record")
    found = Leaf(data.whole("index"), record, data.many("path", sha256))
    data.done()
    return found


def _pruned(data: Fields) -> tuple[tuple[Remains, ...], Checkpoint | None]:
    has = data.has("checkpoint")
    checkpoint = Checkpoint.from_json(data.take("checkpoint"), data.where) if has else None
    found = data.many("runs", Remains.from_json), checkpoint
    data.done()
    return found


def _unsigned(value: Any, where: str) -> str:
    data = Fields(value, where)
    found = data.text("experiment")
    if data.has("verdict"):
        data.text("verdict", VERDICTS)
    data.done()
    return found
