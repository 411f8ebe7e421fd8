"""The head of a service's tree: how large it is, its root, when, and how many runs of what.

How many runs there are of each class version is a list, which may be long. What is signed is the
root of a second Merkle tree over it: so a run's end changes a dozen hashes, whoever wants the head
is given the list as well, and whoever checks makes the root anew from it. Heads from before have
the list itself in what is signed.

The certificates that a service gave out are leaves of a third tree, of which the root and the count
are signed (:mod:`ldfi.checker.certificate_signature`); heads from before there was one do not speak
of them.

Every key of the service signs it (there are two while one takes over from the other), and the ids
of these keys are part of what is signed. Ed25519, by the package ``cryptography``.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ldfi.checker import merkle
from ldfi.checker.canonical import canonical
from ldfi.checker.errors import Unreadable
from ldfi.checker.fields import Fields, text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FORMAT: Final = "ldfi-head/3"
UNCERTIFIED: Final = "ldfi-head/2"
BEFORE: Final = "ldfi-head/1"
_FAR: Final = 1e12
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----", re.DOTALL)

ClassVersion = tuple[str, int]
"""A request class, and which version of it."""


def count_leaf(class_version: ClassVersion, many: int) -> bytes:
    """Hash how many runs there are of a class version."""
    return merkle.leaf(canonical([*class_version, many]))


def counts_root(runs: Mapping[ClassVersion, int]) -> bytes:
    """Return the root of the tree over these counts, in their order."""
    leaves = [count_leaf(each, many) for each, many in runs.items()]
    return merkle.root(len(leaves), merkle.lookup(leaves))


@dataclass(frozen=True, slots=True)
class CertificateTree:
    """How many certificates there are, and the root of the tree over them."""

    count: int
    root: bytes

    def to_json(self) -> dict[str, Any]:
        """Write it down."""
        return {"count": self.count, "root": self.root.hex()}

    @classmethod
    def from_json(cls, data: Fields) -> CertificateTree:
        """Read what :meth:`to_json` wrote. Raises Unreadable for anything else."""
        found = cls(data.whole("count"), data.hashed("root"))
        data.done()
        return found


@dataclass(frozen=True, slots=True)
class Head:
    """``time``: Unix seconds. ``runs``: how many there are of each class version, in the order in
    which these came; empty where nobody looked them up. ``counts``: the root of the tree over them;
    None in heads from before there was one. ``certificates``: the tree over those that were given
    out; None where none was.
    """

    size: int
    root: bytes
    time: float
    runs: Mapping[ClassVersion, int]
    keys: tuple[str, ...] = ()
    signatures: Mapping[str, bytes] = field(default_factory=dict)
    counts: bytes | None = None
    certificates: CertificateTree | None = None

    def signed_by(self, keys: Iterable[SigningKey]) -> Head:
        """Have these keys sign it, and no others."""
        keys = list(keys)
        bare = replace(self, keys=tuple(sorted(key.id for key in keys)), signatures={})
        return replace(bare, signatures={key.id: key.sign(bare.body()) for key in keys})

    def body(self) -> bytes:
        """Return the bytes that are signed."""
        return canonical(self._said())

    def to_json(self) -> dict[str, Any]:
        """Write it down, with its signatures, and with the runs that it counts."""
        signatures = {key: base64.b64encode(s).decode() for key, s in self.signatures.items()}
        return {"runs": self._listed(), **self._said(), "signatures": signatures}

    def _listed(self) -> list[list[Any]]:
        return [[name, version, many] for (name, version), many in self.runs.items()]

    def _said(self) -> dict[str, Any]:
        if self.counts is None:
            counted: dict[str, Any] = {"format": BEFORE, "runs": sorted(self._listed())}
        else:
            counted = {"format": UNCERTIFIED, "counts": self.counts.hex()}
        if self.certificates is not None:
            counted |= {"format": FORMAT, "certificates": self.certificates.to_json()}
        return {
            **counted,
            "size": self.size,
            "root": self.root.hex(),
            "time": self.time,
            "keys": list(self.keys),
        }

    @classmethod
    def from_json(cls, value: Any, where: str = "the head") -> Head:
        """Read what :meth:`to_json` wrote. Raises Unreadable for anything else."""
        data = Fields(value, where)
        written = data.text("format", (FORMAT, UNCERTIFIED, BEFORE))
        runs = data.many("runs", _count)
        signatures = data.take("signatures")
        if not isinstance(signatures, dict):
            raise Unreadable(f"{where}: signatures is not an object")
        head = cls(
            size=data.whole("size"),
            root=data.hashed("root"),
            time=data.number("time", 0, _FAR),
            runs={(name, version): many for name, version, many in runs},
            keys=data.many("keys", text),
            signatures={key: _signature(each, where) for key, each in signatures.items()},
            counts=None if written == BEFORE else data.hashed("counts"),
            certificates=(
                CertificateTree.from_json(data.inner("certificates")) if written == FORMAT else None
            ),
        )
        data.done()
        if len(head.runs) < len(runs):
            raise Unreadable(f"{where} counts a class version twice")
        return head

    def wrong(self, known: Iterable[PublicKey]) -> Iterator[str]:
        """Yield why it is not what a trusted key has signed."""
        if sum(self.runs.values()) != self.size:
            yield f"{sum(self.runs.values())} runs are counted, of {self.size}"
        if self.counts is not None and counts_root(self.runs) != self.counts:
            yield "the runs that it counts are not those that were signed"
        if set(self.keys) != set(self.signatures):
            yield "it is not signed by the keys that it names"
        mine = [key for key in known if key.id in self.signatures]
        if not mine:
            yield (
                f"it is signed by {', '.join(sorted(self.signatures)) or 'nobody'}, whom nobody "
                "here trusts"
            )
        body = replace(self, signatures={}).body()
        for key in mine:
            if not key.signed(body, self.signatures[key.id]):
                yield f"what it says is not what key {key.id} signed"


class SigningKey:
    """A private key. Raises Unreadable for a PEM block that is none of Ed25519."""

    def __init__(self, pem: str) -> None:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(pem.encode(), None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise Unreadable("this is not a private key in PEM, without a passphrase") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise Unreadable("this private key is none of Ed25519")
        self._key: Ed25519PrivateKey = key
        self.id = _id(key.public_key().public_bytes_raw())

    def sign(self, body: bytes) -> bytes:
        """Sign."""
        return self._key.sign(body)

    def public_pem(self) -> str:
        """Return the public key in PEM."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = self._key.public_key()
        return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


class PublicKey:
    """A public key. Raises Unreadable for a PEM block that is none of Ed25519."""

    def __init__(self, pem: str) -> None:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        try:
            key = load_pem_public_key(pem.encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise Unreadable("this is not a public key in PEM") from error
        if not isinstance(key, Ed25519PublicKey):
            raise Unreadable("this public key is none of Ed25519")
        self._key = key
        self.id = _id(key.public_bytes_raw())

    def signed(self, body: bytes, signature: bytes) -> bool:
        """Return whether this key made the signature."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature, body)
        except InvalidSignature:
            return False
        return True


def signing_keys(pem: str) -> tuple[SigningKey, ...]:
    """Read the private keys of a PEM file. Raises Unreadable where there is none."""
    return tuple(map(SigningKey, _blocks(pem)))


def public_keys(pem: str) -> tuple[PublicKey, ...]:
    """Read the public keys of a PEM file. Raises Unreadable where there is none."""
    return tuple(map(PublicKey, _blocks(pem)))


def _blocks(pem: str) -> list[str]:
    found = [match.group() for match in _BLOCK.finditer(pem)]
    if not found:
        raise Unreadable("there is no key in PEM here")
    return found


def _id(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:16]


def _count(value: Any, where: str) -> tuple[str, int, int]:
    if not isinstance(value, list) or len(value) != 3:
        raise Unreadable(f"{where} is not a class, version and count")
    data = Fields(dict(zip(("class", "version", "count"), value, strict=True)), where)
    return data.text("class"), data.whole("version"), data.whole("count", 1)


def _signature(value: Any, where: str) -> bytes:
    try:
        return base64.b64decode(text(value, where), validate=True)
    except ValueError as error:
        raise Unreadable(f"{where}: a signature is not base64") from error
