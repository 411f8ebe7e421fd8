"""The signature on a certificate: its leaf in the tree over the certificates of a service.

There is one leaf for each campaign and request class, which holds the certificate as it was given
out last, with the class version, the campaign and its settings. The head signs the root. So whoever
changes a word of it, or shows an older one beside the present head, shows something that nobody
has signed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ldfi.checker import merkle
from ldfi.checker.canonical import canonical
from ldfi.checker.fields import Fields, sha256
from ldfi.checker.head import ClassVersion
from ldfi.checker.record import FAR

FORMAT: Final = "ldfi-certified/1"


@dataclass(frozen=True, slots=True)
class Certified:
    """``campaign``: its id. ``settings``: what it was asked for. ``time``: when the certificate was
    put on record (Unix seconds). ``place``: its leaf; ``path`` proves that it is in the tree."""

    campaign: str
    settings: Mapping[str, Any]
    time: float
    place: int = 0
    path: tuple[bytes, ...] = ()

    def leaf(self, class_version: ClassVersion, certificate: Mapping[str, Any]) -> bytes:
        """Return the hash of its leaf. Raises ValueError for what has no canonical form."""
        name, version = class_version
        said = {
            "format": FORMAT,
            "request_class": name,
            "version": version,
            "campaign": self.campaign,
            "settings": self.settings,
            "time": self.time,
            "certificate": certificate,
        }
        return merkle.leaf(canonical(said))

    def to_json(self) -> dict[str, Any]:
        """Write it down."""
        return {
            "campaign": self.campaign,
            "settings": dict(self.settings),
            "time": self.time,
            "place": self.place,
            "path": [each.hex() for each in self.path],
        }

    @classmethod
    def from_json(cls, value: Any, where: str = "the signature of a certificate") -> Certified:
        """Read what :meth:`to_json` wrote. Raises Unreadable for anything else."""
        data = Fields(value, where)
        settings = data.take("settings")
        Fields(settings, f"{where}: settings")
        found = cls(
            campaign=data.text("campaign"),
            settings=settings,
            time=data.number("time", 0, FAR),
            place=data.whole("place"),
            path=data.many("path", sha256),
        )
        data.done()
        return found
