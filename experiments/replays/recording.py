"""Recordings: requests as they came in, without secrets, to be sent again.

JSON Lines: the first line says what the file is, each other one is a request. Its JSON Schema is
``docs/recording.schema.json`` (``ldfi replay schema``). What was taken out of a request has left a
``*``: such a hole is filled when it is replayed, by what the caller says, or the request is left
out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from ldfi.experiments.errors import InvalidReplay
from ldfi.experiments.scenarios.assertion import Expected
from ldfi.experiments.scenarios.redaction import HOLE, Redacted
from ldfi.experiments.scenarios.replay import SAFE_METHODS

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
    query: dict[str, str] = Field(default={}, description="Parameters by name.")
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
    def safe(self) -> bool:
        """Whether sending it again changes nothing."""
        return self.method in SAFE_METHODS

    @property
    def target(self) -> str:
        """Path and query as they are sent."""
        query = "&".join(f"{quote(n, safe='')}={quote(v, safe='')}" for n, v in self.query.items())
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
        raise InvalidReplay(f"{file} cannot be read: {error}") from error
    head, requests = RecordingHead(), []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found = _LINE.validate_json(line)
        except ValidationError as error:
            told = "; ".join(
                f"{e['loc'][-1] if e['loc'] else ''}: {e['msg']}" for e in error.errors()[:3]
            )
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
    return RecordedRequest(
        method=kept.method,
        path=kept.path,
        query=dict(kept.query),
        headers=dict(kept.headers),
        body=kept.body,
    )


def filled(
    requests: Iterable[RecordedRequest], values: Mapping[str, Sequence[str]]
) -> tuple[list[tuple[RecordedRequest, float]], int]:
    """Fill the holes: of a query parameter or a field of the body by its name, of a path by the
    segment before it. A request comes once for each value, each as often as its share of
    ``times``. Also says how many stay out, because nobody said what to put in."""
    made: list[tuple[RecordedRequest, float]] = []
    left_out = 0
    for each in requests:
        rounds = max((len(values[name]) for name in _holes(each) if name in values), default=1)
        whole = _with(each, values, 0)
        if any(True for _ in _holes(whole)):
            left_out += each.times
        else:
            made += [(_with(each, values, n), each.times / rounds) for n in range(rounds)]
    return made, left_out


def _holes(each: RecordedRequest) -> Iterable[str]:
    before = ""
    for segment in each.path.split("/"):
        if segment == HOLE:
            yield before
        before = segment
    for name, value in each.query.items():
        if HOLE in {name, value}:
            yield name
    yield from _body_holes("", each.body)


def _body_holes(name: str, body: JsonValue) -> Iterable[str]:
    if body == HOLE:
        yield name
    elif isinstance(body, dict):
        for key, value in body.items():
            yield from _body_holes(key, value)
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
            "query": {n: put(n) if v == HOLE else v for n, v in each.query.items()},
            "body": _filled_body("", each.body, put),
            "name": each.request_class,
        }
    )


def _filled_body(name: str, body: JsonValue, put: Any) -> JsonValue:
    if body == HOLE:
        text: str = put(name)
        return text
    if isinstance(body, dict):
        return {key: _filled_body(key, value, put) for key, value in body.items()}
    if isinstance(body, list):
        return [_filled_body(name, value, put) for value in body]
    return body
