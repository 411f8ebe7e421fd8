"""What is left of runs that were dropped by age, and who says so: nobody took them out.

Of such a run its place in the tree and its hash stay, which prove that there was one; and what it
came to: its verdict, what it tried, what fired. Nothing of that can be worked out anew, so a
service signs, for each class version, a Merkle tree over all of these remains: the *checkpoint*.
A run that is not here and in no checkpoint was taken out, and so was one whose remains are not what
was signed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from ldfi.checker import merkle
from ldfi.checker.canonical import canonical
from ldfi.checker.errors import Unreadable
from ldfi.checker.fields import Fields, sha256, text
from ldfi.checker.head import ClassVersion, PublicKey, SigningKey
from ldfi.checker.record import FAR, VERDICTS, RunRecord

FORMAT: Final = "ldfi-checkpoint/1"


@dataclass(frozen=True, slots=True)
class Remains:
    """``index``: the leaf of the tree; ``hashed``: its hash; ``number``: which run of its class
    version it was. ``path`` proves that the leaf is in the tree, and is no part of what is
    signed."""

    index: int
    number: int
    hashed: bytes
    verdict: str | None
    hypothesis: tuple[str, ...]
    fired: tuple[str, ...]
    path: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, record: RunRecord, index: int) -> Remains:
        """Return what is kept of a record."""
        return cls(
            index, record.number, record.leaf, record.verdict, record.hypothesis, record.fired
        )

    def said(self) -> dict[str, Any]:
        """Return the entry that is signed, as JSON."""
        return {
            "index": self.index,
            "number": self.number,
            "leaf": self.hashed.hex(),
            "verdict": self.verdict,
            "hypothesis": list(self.hypothesis),
            "fired": list(self.fired),
        }

    def to_json(self) -> dict[str, Any]:
        """Write it down with its path."""
        return {**self.said(), "path": [each.hex() for each in self.path]}

    @classmethod
    def from_json(cls, value: Any, where: str = "the remains") -> Remains:
        """Read what :meth:`to_json` wrote. Raises Unreadable for anything else."""
        data = Fields(value, where)
        found = cls(
            index=data.whole("index"),
            number=data.whole("number", 1),
            hashed=data.hashed("leaf"),
            verdict=data.text("verdict", VERDICTS) if data.has("verdict") else None,
            hypothesis=data.many("hypothesis", text),
            fired=data.many("fired", text),
            path=data.many("path", sha256),
        )
        data.done()
        return found


def remains_root(remains: Iterable[Remains]) -> bytes:
    """Return the root of the tree over remains, in the order of their numbers. The entries are what
    :meth:`Remains.said` says; there are many, so what is often the same is written down once."""
    written = lru_cache(maxsize=10_000)(canonical)
    return merkle.root_of(
        [
            merkle.leaf(
                b'{"fired":%b,"hypothesis":%b,"index":%d,"leaf":"%b","number":%d,"verdict":%b}'
                % (
                    written(each.fired),
                    written(each.hypothesis),
                    each.index,
                    each.hashed.hex().encode(),
                    each.number,
                    written(each.verdict),
                )
            )
            for each in sorted(remains, key=lambda each: each.number)
        ]
    )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """``time``: when it was signed (Unix seconds). ``count``, ``root``: of the remains."""

    request_class: str
    version: int
    time: float
    count: int
    root: bytes
    signatures: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def over(
        cls, class_version: ClassVersion, remains: Sequence[Remains], now: float
    ) -> Checkpoint:
        """Return an unsigned checkpoint over all remains of a class version."""
        return cls(*class_version, now, len(remains), remains_root(remains))

    def signed_by(self, keys: Iterable[SigningKey]) -> Checkpoint:
        """Have these keys sign it, and no others."""
        return replace(self, signatures={key.id: key.sign(self._body()) for key in keys})

    def to_json(self) -> dict[str, Any]:
        """Write it down, with its signatures."""
        signatures = {key: base64.b64encode(s).decode() for key, s in self.signatures.items()}
        return {**self._said(), "signatures": signatures}

    @classmethod
    def from_json(cls, value: Any, where: str = "the checkpoint") -> Checkpoint:
        """Read what :meth:`to_json` wrote. Raises Unreadable for anything else."""
        data = Fields(value, where)
        data.text("format", (FORMAT,))
        signatures = data.take("signatures")
        if not isinstance(signatures, dict):
            raise Unreadable(f"{where}: signatures is not an object")
        found = cls(
            request_class=data.text("request_class"),
            version=data.whole("version"),
            time=data.number("time", 0, FAR),
            count=data.whole("count"),
            root=data.hashed("root"),
            signatures={key: _signature(each, where) for key, each in signatures.items()},
        )
        data.done()
        return found

    def wrong(
        self, class_version: ClassVersion, remains: Sequence[Remains], known: Iterable[PublicKey]
    ) -> Iterator[str]:
        """Yield why these remains are not what a trusted key has signed."""
        known = tuple(known)
        yield from self.changed(class_version, remains, known)
        if self.signatures and not any(key.id in self.signatures for key in known):
            yield "it is signed by nobody whom anybody here trusts"

    def changed(
        self, class_version: ClassVersion, remains: Sequence[Remains], known: Iterable[PublicKey]
    ) -> Iterator[str]:
        """Yield why these remains are not what was signed. Without a key that signed them, only
        whether they contradict themselves."""
        if (self.request_class, self.version) != class_version:
            yield "it is of another class version"
        if self.count != len(remains) or self.root != remains_root(remains):
            yield "what is left of pruned runs is not what was signed"
        for key in known:
            if key.id in self.signatures and not key.signed(self._body(), self.signatures[key.id]):
                yield f"what it says is not what key {key.id} signed"

    def _body(self) -> bytes:
        return canonical(self._said())

    def _said(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "request_class": self.request_class,
            "version": self.version,
            "time": self.time,
            "count": self.count,
            "root": self.root.hex(),
        }


def _signature(value: Any, where: str) -> bytes:
    try:
        return base64.b64decode(text(value, where), validate=True)
    except ValueError as error:
        raise Unreadable(f"{where}: a signature is not base64") from error
