"""The scenario: a finding in one file, to be read, compared, kept beside the code, and replayed.

The file is YAML in a fixed order, so that two versions of it differ where the finding does. Its
JSON Schema is ``docs/scenario.schema.json`` (``ldfi scenario schema``). What may stand in it of a
request says :mod:`ldfi.scenarios.redaction`; what has the form of a credential is
refused when a scenario is made as well as when one is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from ldfi.error_words import fault, unreadable
from ldfi.errors import InvalidScenario
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.features import MAX_QUERY_LENGTH
from ldfi.fit.protocol.kinds import FaultKind, longest
from ldfi.fit.protocol.native import check_native
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.lineage.outline import Outline
from ldfi.scenarios.assertion import Expected
from ldfi.scenarios.document import load
from ldfi.scenarios.redaction import HOLE, looks_secret

VERSION: Final = 1
HEAD: Final = "# A finding of ldfi. To replay it: ldfi reproduce FILE --target URL --device YOURS\n"
Header = Literal["accept", "accept-language", "content-type", "user-agent", "x-device-type"]
"""Headers that a scenario may hold; credentials are given when it is replayed."""


def _fault(text: str) -> str:
    fault = Fault.parse(text)
    check_native(fault.kind, fault.point)
    if looks_secret(fault.point):
        raise ValueError(
            "the name of its point has something of the form of a secret or an identifier in it; "
            "its caller has to give url.template"
        )
    return text


def _harmless(text: str) -> str:
    if looks_secret(text):
        raise ValueError("has the form of a secret, an e-mail address or an identifier of somebody")
    return text


def _variable(text: str) -> str:
    _harmless(text.partition("@")[2])
    return text


FaultText = Annotated[str, AfterValidator(_fault)]
Harmless = Annotated[str, Field(max_length=1000), AfterValidator(_harmless)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ConditionOf(_Part):
    """One condition of a request class."""

    feature: Harmless = Field(
        description="What is looked at of a request: method, path, a parameter.",
        examples=["method"],
    )
    value: Harmless | None = Field(
        default=None,
        description="What it has to be; null: whatever it is, as long as it is there.",
        examples=["GET"],
    )
    negated: bool = Field(default=False, description="Whether the condition is turned round.")


class RequestClass(_Part):
    """Which requests behave alike: a predicate over what is known when one arrives."""

    name: Harmless = Field(description="What the service calls it.", examples=["GET /boot"])
    service: Harmless = Field(default="", description="Where its requests enter.")
    predicate: list[ConditionOf] = Field(
        default=[], description="Conditions, all of which its requests meet; none: every request."
    )

    def meant(self) -> Predicate:
        """Make the predicate that an edge evaluates."""
        return Predicate.of(Condition(c.feature, c.value, c.negated) for c in self.predicate)


class Request(_Part):
    """An exemplar of the class. `*` stands where something was taken out, or never known."""

    method: Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] = Field(
        description="The HTTP method."
    )
    path: Annotated[
        str,
        Field(
            description="The path, which begins with /; `*` stands for a segment that was taken "
            "out.",
            pattern=r"^/[^\s?#]*$",
            max_length=2048,
            examples=["/boot"],
        ),
    ]
    query: str = Field(default="", description="Raw, without `?`.", max_length=MAX_QUERY_LENGTH)
    headers: dict[Header, Harmless] = Field(
        default={},
        description="Only these five; credentials are given at replay. `user-agent` is made up, of "
        "the kind of device.",
    )
    body: JsonValue = Field(
        default=None,
        description="The shape of a JSON body; `*` where a value was, or for the whole.",
    )

    @field_validator("path", "query")
    @classmethod
    def _no_secret(cls, text: str) -> str:
        return _harmless(text)

    @field_validator("body")
    @classmethod
    def _no_secrets(cls, body: JsonValue) -> JsonValue:
        for text in _texts(body):
            _harmless(text)
        return body

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def holes(self) -> bool:
        """Return whether something has to be filled in before it can be sent."""
        return any(HOLE in text for text in (self.target, *_texts(self.body)))


class Arm(_Part):
    """Devices of one arm of the experiment that convicted it, and how many saw a failure."""

    devices: Annotated[int, Field(description="Devices that were compared.", ge=0)]
    failures: Annotated[int, Field(description="How many of them reported a failure.", ge=0)]


class Seen(_Part):
    """What the users' devices saw."""

    error_code: Harmless | None = Field(
        default=None, description="What a device called the failure."
    )
    seconds: float | None = Field(default=None, description="How long that user waited.")
    control: Arm | None = Field(default=None, description="Devices that no fault was injected for.")
    treatment: Arm | None = Field(
        default=None,
        description="Devices that the faults were injected for; null: no experiment is on record.",
    )


class Call(_Part):
    """A call, and the calls within it. `callee`: what answered, where it is known."""

    call: Harmless = Field(
        description="What was called: the kind of call and its operation.",
        examples=["GET playlist/*"],
    )
    callee: Harmless = Field(
        default="", description="What answered; empty: nobody knows.", examples=["playlist"]
    )
    times: Annotated[
        int, Field(description="How many calls alike came one after the other.", ge=1)
    ] = 1
    failed: bool = Field(default=False, description="Whether it failed.")
    fired: list[FaultKind] = Field(
        default=[], description="What was injected into it.", examples=[["error"]]
    )
    calls: list[Call] = Field(
        default=[], description="The calls within it, in their order.", examples=[[]]
    )


class Lineages(_Part):
    """What a request that goes right calls, and what the one called that failed."""

    expected: list[Call] = Field(default=[], description="Calls of a request that goes right.")
    observed: list[Call] = Field(default=[], description="Calls of the one that failed.")

    def outlines(self) -> tuple[list[Outline], list[Outline]]:
        """List the calls of both lineages, to be laid side by side."""
        return outlines(self.expected), outlines(self.observed)


class Evidence(_Part):
    """Where it comes from: ids in the service that found it, traces in one's tracing system."""

    finding: Harmless | None = Field(
        default=None,
        description="Id of the finding; null: it was written by hand.",
        examples=["3f1c9a52b7de"],
    )
    state: Harmless | None = Field(
        default=None,
        description="What had become of the finding when this was written; null: not known.",
    )
    campaign: Harmless | None = Field(
        default=None, description="Id of the campaign that found it; null: not known."
    )
    experiment: Harmless | None = Field(
        default=None,
        description="Id of the experiment that shows best that it hurts; null: not known.",
    )
    traces: list[Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]] = Field(
        default=[],
        description="Trace ids of requests that failed under it.",
        examples=[["5b8efff798038103d269b633813fc60c"]],
    )
    minimal: bool = Field(
        default=True, description="No proper subset of the faults is known to be enough."
    )


class Environment(_Part):
    """Where it was found, and by what."""

    ldfi: str = Field(description="Version of ldfi.", examples=["0.2.0"])
    found: Annotated[str, Field(description="When, in UTC, ISO 8601.")] | None = Field(
        default=None,
        description="When it was found, in UTC, ISO 8601; null: not known.",
        examples=["2026-01-01T00:00:00Z"],
    )
    verified: str | None = Field(default=None, description="When it was last tried again, in UTC.")
    class_version: int | None = Field(
        default=None, description="Goes up when the class's lineage changes."
    )


class Scenario(_Part):
    """A set of faults, and a request of a class that fails when they fire together."""

    version: Literal[1] = Field(description="Of this format.")
    id: Annotated[str, Field(pattern=r"^[0-9a-zA-Z_-]{1,40}$")] = Field(
        description="Of the failing set: the same set of the same class has the same id anywhere.",
        examples=["3f1c9a52b7de"],
    )
    title: Harmless = Field(
        description="What it is, in a sentence.",
        examples=["GET /boot is lost when playlist does not answer"],
    )
    request_class: RequestClass = Field(description="The class whose requests fail.")
    request: Request = Field(description="A request of that class, to be sent.")
    faults: Annotated[list[FaultText], Field(min_length=1)] = Field(
        description="KIND@POINT, or KIND:FIRST@POINT for the first so many calls of a request.",
        examples=[["error@api>http:GET:playlist/*"]],
    )
    hypothesis: list[Annotated[str, AfterValidator(_variable)]] = Field(
        default=[],
        description="The same in the words of the finding, where those are not the faults: "
        "down@SYSTEM stands for an error at each of its points.",
        examples=[["error@api>http:GET:playlist/*"]],
    )
    delay: Annotated[float, Field(gt=0, le=9999)] = Field(
        10.0, description="Seconds that a delay hangs, at the longest."
    )
    expect: Expected = Field(default=Expected(), description="What a good answer is.")
    seen: Seen = Field(default=Seen(), description="What users' devices saw.")
    lineage: Lineages = Field(
        default=Lineages(), description="Both lineages, to be laid side by side."
    )
    evidence: Evidence = Field(default=Evidence(), description="Where it comes from.")
    environment: Environment = Field(description="What it was found with, and when.")

    @model_validator(mode="after")
    def _one_fault_a_point(self) -> Self:
        points = [Fault.parse(text).point for text in self.faults]
        if len(set(points)) < len(points):
            raise ValueError("two faults at one point: a failure context holds one for each")
        return self

    @model_validator(mode="after")
    def _long_enough(self) -> Self:
        wanted = longest(Fault.parse(text).kind for text in self.faults)
        if wanted > self.delay:
            raise ValueError(
                f"lengths of {wanted:g} s are drawn, above delay, the longest there is"
            )
        return self

    def injected(self) -> tuple[Fault, ...]:
        """List the faults to inject when it is replayed."""
        return tuple(sorted(map(Fault.parse, self.faults)))

    def to_json(self) -> dict[str, Any]:
        """Write what is said in it, in its order; what is left open is left out."""
        document: dict[str, Any] = self.model_dump(mode="json", exclude_defaults=True)
        return document

    def to_yaml(self) -> str:
        """Write the file."""
        return HEAD + yaml.dump(
            self.to_json(), Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True
        )


class _Dumper(yaml.SafeDumper):
    """Lists stand indented under their key, and nothing refers to anything by an anchor."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def read(path: Path) -> Scenario:
    """Read a scenario file. Raises InvalidScenario; the message lists every fault in it."""
    try:
        document = load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidScenario(f"{path} cannot be read: {unreadable(error)}") from error
    return of_document(document, str(path))


def of_document(document: object, name: str = "the scenario") -> Scenario:
    """Read a scenario from parsed YAML or JSON. Raises InvalidScenario."""
    version = document.get("version") if isinstance(document, dict) else None
    if version is not None and version != VERSION:
        raise InvalidScenario(
            f"{name} is of version {version!r}; this ldfi reads version {VERSION}"
        )
    try:
        return Scenario.model_validate(document)
    except ValidationError as error:
        raise InvalidScenario(
            "\n".join(f"{name}, {_place(i['loc'])}: {fault(i)}" for i in error.errors())
        ) from None


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Scenario.model_json_schema(),
        "title": "ldfi scenario, version 1",
    }


def schema_text() -> str:
    """Write the JSON Schema as it is published."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def calls(outlined: Iterable[Outline]) -> list[Call]:
    """Write outlines of a lineage as a scenario holds them; a point that has the form of a
    secret goes without its name."""
    return [
        Call(
            call=_shown(each.point),
            callee=_shown(each.callee),
            times=each.times,
            failed=each.failed,
            fired=sorted(each.fired),
            calls=calls(each.calls),
        )
        for each in outlined
    ]


def outlines(listed: Iterable[Call]) -> list[Outline]:
    """Read outlines back: the reverse of :func:`calls`."""
    return [
        Outline(
            each.call,
            each.failed,
            tuple(sorted(each.fired)),
            each.callee,
            tuple(outlines(each.calls)),
            each.times,
        )
        for each in listed
    ]


def _shown(name: str) -> str:
    if not looks_secret(name):
        return name
    return "/".join(HOLE if looks_secret(part) else part for part in name.split("/"))


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _texts(each)


def _place(where: tuple[int | str, ...]) -> str:
    return ".".join(map(str, where)) or "as a whole"
