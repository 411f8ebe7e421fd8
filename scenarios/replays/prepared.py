"""Recorded requests as they go over the wire, but for what is different each time."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from ldfi.error_words import few
from ldfi.errors import InvalidReplay
from ldfi.scenarios.replay import LENIENT, QUERY, Assertion, Exemplar
from ldfi.scenarios.replays.connections import TargetAddress
from ldfi.scenarios.replays.recording import RecordedRequest, Recording, filled
from ldfi.scenarios.replays.recording import holes as holes_of

_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TARGET: Final = re.compile(r"/[!-~]*")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that can be sent. ``weight``: how often, beside others. ``shown``: as people read
    it, with holes. ``headers``: of the recording, credentials are not among them."""

    name: str
    method: str
    target: str
    shown: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    weight: float
    safe: bool
    assertion: Assertion

    def __post_init__(self) -> None:
        if not _TARGET.fullmatch(self.target):
            raise InvalidReplay(f"{self.shown!r} cannot be sent: it is not a path with a query")

    @property
    def reads_body(self) -> bool:
        """Return whether the assertion looks into the body."""
        asserted = self.assertion
        return bool(asserted.body_contains or asserted.body_matches or asserted.json_path)

    def wire(self, origin: TargetAddress, headers: Mapping[str, str]) -> tuple[bytes, bytes]:
        """Write what comes before the trace's id, and after the headers. Raises InvalidReplay."""
        sent = {
            **{name.lower(): value for name, value in self.headers},
            **{name.lower(): value for name, value in headers.items()},
            "host": origin.authority,
            "x-ldfi-replay": "1",
            "x-device-id": "replay",
        }
        if self.body:
            sent.setdefault("content-type", "application/json")
        if self.body or not self.safe:
            sent["content-length"] = str(len(self.body))
        for name, value in sent.items():
            if not _HEADER.fullmatch(name) or not value.isprintable():
                raise InvalidReplay(f"{name!r} is not a header that can be sent")
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        first = f"{self.method} {origin.base}{self.target} HTTP/1.1\r\n"
        return f"{first}{lines}traceparent: 00-".encode("latin-1", "replace"), self.body


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Recorded requests that are not sent. ``holes``: nobody said what to put in, ``names`` are
    those to fill. ``writes``: they would change something."""

    holes: Sequence[RecordedRequest] = ()
    names: Sequence[str] = ()
    writes: Sequence[RecordedRequest] = ()

    @classmethod
    def of(
        cls,
        holes: Sequence[RecordedRequest],
        writes: Sequence[RecordedRequest],
        values: Collection[str],
    ) -> LeftOut:
        """Name what is left out. ``values``: the names that were filled."""
        names = dict.fromkeys(name for each in holes for name in holes_of(each))
        return cls(holes, [name for name in names if name not in values], writes)

    def __len__(self) -> int:
        """Count the requests, as often as they were recorded."""
        return _times(self.holes) + _times(self.writes)

    def __str__(self) -> str:
        """Say which requests these are, and what would have them sent; empty where there are
        none."""
        said = []
        if self.holes:
            fill = few([f"--fill {shlex.quote(name)}=VALUES" for name in self.names if name])
            way = f"; {fill} says what to put there" if fill else ""
            said.append(f"{_times(self.holes)} have holes (*): {_named(self.holes)}{way}")
        if self.writes:
            said.append(
                f"{_times(self.writes)} would change something: {_named(self.writes)}; --unsafe"
                " sends them"
            )
        return ". ".join(said)


def _times(requests: Iterable[RecordedRequest]) -> int:
    return sum(each.times for each in requests)


def _named(requests: Iterable[RecordedRequest]) -> str:
    """Name requests, the most frequent first."""
    often = sorted(requests, key=lambda each: -each.times)
    return few(list(dict.fromkeys(each.request_class for each in often)))


def prepared(
    recording: Recording, values: Mapping[str, Sequence[str]], *, unsafe: bool
) -> tuple[list[Prepared], LeftOut]:
    """Prepare a recording's requests; returns also those that stay out. Raises InvalidReplay where
    none is left."""
    allowed = [each for each in recording.requests if unsafe or each.safe]
    writes = [each for each in recording.requests if not (unsafe or each.safe)]
    whole, holes = filled(allowed, values)
    left_out = LeftOut.of(holes, writes, values)
    if not whole:
        raise InvalidReplay(
            f"none of the {len(left_out)} recorded requests can be sent: {left_out}"
        )
    default = recording.head.expect
    return [
        _of(each, weight, default.assertion() if default else LENIENT) for each, weight in whole
    ], left_out


def _of(each: RecordedRequest, weight: float, default: Assertion) -> Prepared:
    return Prepared(
        each.request_class,
        each.method,
        each.target,
        each.request_class.partition(" ")[2] or each.path,
        tuple(Exemplar(each.method, each.path, "", each.headers).replayable_headers().items())
        + tuple((n, v) for n, v in each.headers.items() if n.lower() == "content-type"),
        json.dumps(each.body).encode() if each.body is not None else b"",
        weight,
        each.safe,
        each.expect.assertion() if each.expect else default,
    )


def of_exemplars(exemplars: Iterable[Exemplar], assertion: Assertion | None) -> list[Prepared]:
    """Prepare the exemplars of a YAML file: each is a class of its own, its query sent as it is."""
    made = []
    for each in exemplars:
        headers = each.replayable_headers()
        request = RecordedRequest(method=each.method.upper(), path=each.path, headers=headers)
        target = (
            f"{request.target}?{quote(each.query, safe=QUERY)}" if each.query else request.target
        )
        one = _of(request, 1.0, assertion or LENIENT)
        made.append(replace(one, target=target, shown=target))
    return made
