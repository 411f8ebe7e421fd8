"""Where recordings come from: access logs, HAR files and traces; secrets go before all else.

What is kept of a request is what :mod:`ldfi.scenarios.redaction` keeps: no credentials,
no identifiers, of bodies the shape. Requests that are the same without these are counted.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

from ldfi.error_words import few, unreadable
from ldfi.errors import InvalidReplay, InvalidScenario
from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.readers.files import read_file
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.tree import build
from ldfi.scenarios.redaction import HOLE, RawRequest, redact
from ldfi.scenarios.replays.recording import (
    RecordedRequest,
    Recording,
    RecordingHead,
    recorded,
)
from ldfi.scenarios.request_body import asked

KEPT_SHOWN: Final = 3
"""Parameters that the line names which would keep their values."""

SourceKind = Literal["access log", "har", "traces"]

_GZIP: Final = b"\x1f\x8b"
_SPANS: Final = (b"resourceSpans", b"traceID", b"traceId", b"operationName")
_COMBINED: Final = re.compile(r'"(?P<method>[A-Z]+) (?P<target>\S+)(?: HTTP/[\d.]+)?" \d{3} ')
_METHODS: Final = ("method", "request_method", "http_method", "verb", "requestMethod")
_TARGETS: Final = ("request_uri", "uri", "path", "url", "target", "requestUrl", "request_path")
_QUERIES: Final = ("query", "args", "query_string")


_UNREADABLE: Final = (
    *(OSError, ValueError, RecursionError, UnreadableTraces),
    *(AttributeError, KeyError, TypeError),  # JSON of another shape
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording, and what of the source could not be read as a request. ``dropped``: query
    parameters whose values were taken out, each with those that are plain words: these may be
    kept."""

    recording: Recording
    unread: int
    dropped: Mapping[str, Collection[str]]

    def told(self) -> list[str]:
        """Say what was taken out of queries, and which of it can be kept."""
        plain = {name: list(values) for name, values in self.dropped.items() if values}
        others = [name for name, values in self.dropped.items() if not values]
        said = []
        if plain:
            named = few([f"{name} ({few(values)})" for name, values in plain.items()])
            keep = " ".join(f"--keep {shlex.quote(name)}" for name in list(plain)[:KEPT_SHOWN])
            said.append(f"Values of query parameters were dropped: {named}. {keep} keeps them.")
        if others:
            said.append(
                f"Values that may name or admit somebody were dropped for good: {few(others)}."
            )
        return said


def record(
    file: Path, kind: SourceKind, keep: Collection[str], *, bodies: bool = False
) -> Recorded:
    """Read a source. ``keep``: query parameters whose values stay, where they are plain words.
    ``bodies``: keep the shape of JSON bodies. Raises InvalidReplay."""
    try:
        found = list(_READ[kind](file))
    except _UNREADABLE as error:
        raise InvalidReplay(f"{file} is no {kind} that can be read: {unreadable(error)}") from error
    counts: Counter[str] = Counter()
    requests: dict[str, RecordedRequest] = {}
    dropped: dict[str, dict[str, None]] = {}
    unread = 0
    for raw in found:
        kept = None if raw is None else _kept(raw, keep, bodies=bodies or kind == "traces")
        if raw is not None and kept is not None:
            for name, value in _dropped(raw, kept):
                dropped.setdefault(name, {}).update({value: None} if value else {})
        if kept is None:
            unread += 1
            continue
        key = kept.model_dump_json()
        requests.setdefault(key, kept)
        counts[key] += 1
    if not requests:
        raise InvalidReplay(f"{file} holds no requests, as a {kind}; {unread} lines say nothing")
    made = (each.model_copy(update={"times": counts[key]}) for key, each in requests.items())
    return Recorded(Recording(tuple(made), RecordingHead(source=kind)), unread, dropped)


def _dropped(raw: RawRequest, kept: RecordedRequest) -> Iterator[tuple[str, str]]:
    """List the parameters of which a value was taken out, each with the value where it is plain
    words, which may be kept."""
    everything = dict(parse_qsl(raw.query, keep_blank_values=True))
    whole = recorded(replace(redact(raw, everything), body=None))
    for (name, value), (_, plain) in zip(kept.pairs, whole.pairs, strict=True):
        if value == HOLE and name != HOLE:
            yield name, "" if plain == HOLE else plain


def _log(file: Path) -> Iterator[RawRequest | None]:
    return (_line(each) for each in _text(file).splitlines() if each.strip())


def kind_of(file: Path) -> SourceKind:
    """Return what a file is by its name and first characters: else it is an access log."""
    try:
        with file.open("rb") as opened:
            start = opened.read(2_000).lstrip()
    except OSError as error:
        raise InvalidReplay(f"{file} cannot be read: {unreadable(error)}") from error
    if file.suffix.lower() == ".har" or (start[:1] == b"{" and b'"log"' in start[:200]):
        return "har"
    if start[:2] == b"\x1f\x8b" or any(
        mark in start for mark in (b"resourceSpans", b"traceID", b"traceId", b"operationName")
    ):
        return "traces"
    return "access log"


def _kept(raw: RawRequest, keep: Collection[str], *, bodies: bool) -> RecordedRequest | None:
    given = dict(parse_qsl(raw.query, keep_blank_values=True))
    raw = raw if bodies else replace(raw, body=b"")
    try:
        return recorded(redact(raw, {name: given[name] for name in keep if name in given}))
    except (InvalidScenario, ValueError):
        return None


def _line(line: str) -> RawRequest | None:
    """Read a line of an access log: a JSON object, or the common or combined format."""
    if line.lstrip().startswith("{"):
        return _object(line)
    found = _COMBINED.search(line)
    return None if found is None else _request(found["method"], found["target"])


def _object(line: str) -> RawRequest | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    nested = document.get("httpRequest") or document.get("request")
    if isinstance(nested, str):  # "GET /home HTTP/1.1"
        method, _, rest = nested.partition(" ")
        return _request(method, rest.partition(" ")[0])
    fields = {**document, **(nested if isinstance(nested, Mapping) else {})}
    method = next((str(fields[n]) for n in _METHODS if fields.get(n)), "")
    target = next((str(fields[n]) for n in _TARGETS if fields.get(n)), "")
    query = next((str(fields[n]) for n in _QUERIES if fields.get(n)), "")
    if not (method and target):
        return None
    return _request(method, f"{target}?{query}" if query and "?" not in target else target)


def _request(
    method: str, target: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b""
) -> RawRequest | None:
    try:
        parts = urlsplit(target)
    except ValueError:
        return None
    return RawRequest(method, parts.path or "/", parts.query, list(headers), body)


def _har(file: Path) -> Iterator[RawRequest | None]:
    for entry in json.loads(_text(file))["log"]["entries"]:
        request: Mapping[str, Any] = entry["request"]
        headers = [(str(h["name"]), str(h["value"])) for h in request.get("headers", ())]
        body = str((request.get("postData") or {}).get("text") or "").encode()
        yield _request(str(request["method"]), str(request["url"]), headers, body)


def _traces(file: Path) -> Iterator[RawRequest | None]:
    spans: dict[str, list[Span]] = {}
    for batch in read_file(file):
        for span in batch.spans:
            spans.setdefault(span.trace_id, []).append(span)
    for trace_id, listed in spans.items():
        tree = build(Trace.of(trace_id, listed))
        features = tree.features if tree is not None else {}
        if "method" not in features or "path" not in features:
            yield None
            continue
        what = asked(features, ())
        query = [(n[6:], v) for n, v in features.items() if n.startswith("query.")]
        headers = [(n[7:], v) for n, v in features.items() if n.startswith("header.")]
        yield RawRequest(
            features["method"],
            features["path"],
            urlencode([*query, *what.query], safe=HOLE),
            headers,
            b"" if what.body in (None, HOLE) else json.dumps(what.body).encode(),
        )


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


_READ: Final[Mapping[SourceKind, Callable[[Path], Iterator[RawRequest | None]]]] = {
    "access log": _log,
    "har": _har,
    "traces": _traces,
}
