"""Recordings: requests as they came in, without secrets, to be sent again.

JSON Lines: the first line says what the file is, each other one is a request. Its JSON Schema is
``docs/recording.schema.json`` (``ldfi replay schema``). What was taken out of a request has left a
``*``: such a hole is filled when it is replayed, by what the caller says, or the request is left
out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from ldfi.error_words import faults, unreadable
from ldfi.errors import InvalidReplay
from ldfi.fit.protocol.features import request_features
from ldfi.scenarios.assertion import Expected
from ldfi.scenarios.redaction import HOLE, Redacted
from ldfi.scenarios.replay import SAFE_METHODS

VERSION: Final = 1
_SAFE: Final = "!$&'()*+,;=:@/~"


class RecordingHead(BaseModel):
    """The first line: what the file is, and where its requests come from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ldfi: Literal["recording"] = "recording"
    version: Literal[1] = VERSION
    source: Literal["access log", "har", "traces", "by hand"] = "by hand"
    expect: Expected | None = Field(
        default=None, description="What a good answer is, where a request does not say it."
    )


class RecordedRequest(BaseModel):
    """A request. ``*`` stands where something was taken out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: Annotated[str, Field(pattern="^[A-Z]+$")] = "GET"
    path: Annotated[str, Field(pattern="^/[^?# ]*$")]
    query: dict[str, str | list[str]] = Field(
        default={}, description="Parameters by name; a list where one is repeated."
    )
    headers: dict[str, str] = Field(default={}, description="Never credentials.")
    body: JsonValue = Field(default=None, description="Of a JSON body, what was allowed.")
    name: str = Field(default="", description="The request class; left out: method and path.")
    times: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=1, description="How often it came."
    )
    expect: Expected | None = Field(default=None, description="What a good answer is.")

    @property
    def request_class(self) -> str:
        """The name under which it is measured."""
        return self.name or f"{self.method} {self.path}"

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The parameters of the query, one by one."""
        return [
            (name, each)
            for name, value in self.query.items()
            for each in ([value] if isinstance(value, str) else value)
        ]

    @property
    def safe(self) -> bool:
        """Return whether sending it again changes nothing."""
        return self.method in SAFE_METHODS

    @property
    def target(self) -> str:
        """Path and query as they are sent."""
        query = "&".join(f"{quote(n, safe='')}={quote(v, safe='')}" for n, v in self.pairs)
        path = quote(self.path, safe=_SAFE + "%")
        return f"{path}?{query}" if query else path


_LINE: Final = TypeAdapter[RecordingHead | RecordedRequest](RecordingHead | RecordedRequest)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of one line."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a recording of ldfi",
        **_LINE.json_schema(),
    }


@dataclass(frozen=True, slots=True)
class Recording:
    """Recorded requests, the same ones counted."""

    requests: tuple[RecordedRequest, ...]
    head: RecordingHead = field(default_factory=RecordingHead)

    def to_lines(self) -> str:
        """Write the file."""
        head = self.head.model_dump(exclude_none=True)
        lines = [head, *(each.model_dump(exclude_defaults=True) for each in self.requests)]
        return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def read_recording(file: Path) -> Recording:
    """Read a file. Raises InvalidReplay, with the line that is wrong."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidReplay(f"{file} cannot be read: {unreadable(error)}") from error
    head, requests = RecordingHead(), []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found = _LINE.validate_json(line)
        except ValidationError as error:
            told = "; ".join(list(faults(error))[:3])
            raise InvalidReplay(f"{file}, line {number}: {told}") from error
        if isinstance(found, RecordingHead):
            head = found
        else:
            requests.append(found)
    if not requests:
        raise InvalidReplay(f"{file} holds no requests")
    return Recording(tuple(requests), head)


def recorded(kept: Redacted) -> RecordedRequest:
    """Make a line of a request from which secrets were taken out."""
    query: dict[str, str | list[str]] = {}
    for name in dict.fromkeys(name for name, _ in kept.query):
        values = [value for n, value in kept.query if n == name]
        query[name] = values if len(values) > 1 else values[0]
    return RecordedRequest(
        method=kept.method,
        path=kept.path,
        query=query,
        headers=dict(kept.headers),
        body=kept.body,
        name=_called(kept),
    )


def _called(kept: Redacted) -> str:
    """Name a request by what it asks for, where the path does not say it; else nothing."""
    body = json.dumps(kept.body).encode() if kept.body is not None else None
    features = request_features(kept.method, kept.path, urlencode(kept.query), body=body)
    called = [
        features[name] for name in ("graphql.operation", "jsonrpc.method") if name in features
    ]
    paths = sorted(name.removeprefix("falcor.") for name in features if name.startswith("falcor."))
    called += [each for each in paths if not any(other.startswith(f"{each}.") for other in paths)]
    return f"{kept.method} {kept.path} {', '.join(called)}"[:_LONGEST_NAME] if called else ""


_LONGEST_NAME: Final = 120


def filled(
    requests: Iterable[RecordedRequest], values: Mapping[str, Sequence[str]]
) -> tuple[list[tuple[RecordedRequest, float]], list[RecordedRequest]]:
    """Fill the holes: of a query parameter or a field of the body by its name, of a path by the
    segment before it. A request comes once for each value, each as often as its share of
    ``times``. Returns also those that stay out, because nobody said what to put in."""
    made: list[tuple[RecordedRequest, float]] = []
    left_out: list[RecordedRequest] = []
    for each in requests:
        rounds = max((len(values[name]) for name in holes(each) if name in values), default=1)
        whole = _with(each, values, 0)
        if any(True for _ in holes(whole)):
            left_out.append(each)
        else:
            made += [(_with(each, values, n), each.times / rounds) for n in range(rounds)]
    return made, left_out


def holes(each: RecordedRequest) -> Iterable[str]:
    """List the names by which the holes of a request are filled."""
    before = ""
    for segment in each.path.split("/"):
        if segment == HOLE:
            yield before
        before = segment
    for name, value in each.pairs:
        if HOLE in {name, value}:
            yield name
        elif (keys := _model(value)) is not None:
            yield from (above for key, above in _with_above(keys) if key == HOLE)
    yield from _body_holes("", each.body)


def _body_holes(name: str, body: JsonValue) -> Iterable[str]:
    if body == HOLE:
        yield name
    elif isinstance(body, dict):
        for key, value in body.items():
            yield from _body_holes(_of_operation(key, body), value)
    elif isinstance(body, list):
        for value in body:
            yield from _body_holes(name, value)


def _with(
    each: RecordedRequest, values: Mapping[str, Sequence[str]], number: int
) -> RecordedRequest:
    def put(name: str) -> str:
        given = values.get(name)
        return given[number % len(given)] if given else HOLE

    segments: list[str] = []
    above = ""
    for segment in each.path.split("/"):
        segments.append(quote(put(above), safe=HOLE) if segment == HOLE else segment)
        above = segment
    return each.model_copy(
        update={
            "path": "/".join(segments),
            "query": {
                n: _filled_value(n, v, put)
                if isinstance(v, str)
                else [_filled_value(n, one, put) for one in v]
                for n, v in each.query.items()
            },
            "body": _filled_body("", each.body, put),
            "name": each.request_class,
        }
    )


def _of_operation(key: str, call: Mapping[str, Any]) -> str:
    """Name the hole of a document after its operation: each has one of its own."""
    operation = call.get("operationName")
    return f"{operation}.query" if key == "query" and operation not in {None, HOLE} else key


def _model(value: str) -> list[Any] | None:
    """Read the paths of Falcor's in a parameter; None where it holds none. Nothing is nested more
    deeply than ranges in sets of keys in several paths, so that what is read can be walked."""
    if not value.startswith("["):
        return None
    try:
        keys = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return keys if isinstance(keys, list) and _within(keys, _DEEPEST) else None


def _within(value: Any, levels: int) -> bool:
    """Return whether lists and objects are nested in no more levels than so many."""
    if not isinstance(value, list | dict):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_within(each, levels - 1) for each in inner)


_DEEPEST: Final = 4


def _with_above(keys: Sequence[Any], above: str = "") -> Iterable[tuple[Any, str]]:
    """List the keys of a path, those of sets of keys one by one, each with the word before it."""
    for key in keys:
        if isinstance(key, list):
            yield from _with_above(key, above)
        else:
            yield key, above
            above = key if isinstance(key, str) and key != HOLE else above


def _filled_value(name: str, value: str, put: Callable[[str], str]) -> str:
    keys = _model(value)
    if value == HOLE or keys is None or HOLE not in value:
        return put(name) if value == HOLE else value
    return json.dumps(_filled_keys(keys, "", put), separators=(",", ":"))


def _filled_keys(keys: Sequence[Any], above: str, put: Callable[[str], str]) -> list[Any]:
    made: list[Any] = []
    for key in keys:
        if isinstance(key, list):
            made.append(_filled_keys(key, above, put))
        elif key == HOLE:
            text = put(above)
            made.append(int(text) if _NUMBER.fullmatch(text) else text)
        else:
            made.append(key)
            above = key if isinstance(key, str) else above
    return made


_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,14}")
"""A number that whoever reads JSON reads as it was typed; any other is text."""


def _filled_body(name: str, body: JsonValue, put: Any) -> JsonValue:
    if body == HOLE:
        text: str = put(name)
        return text
    if isinstance(body, dict):
        return {
            key: _filled_body(_of_operation(key, body), value, put) for key, value in body.items()
        }
    if isinstance(body, list):
        return [_filled_body(name, value, put) for value in body]
    return body
