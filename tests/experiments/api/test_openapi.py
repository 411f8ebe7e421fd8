"""The OpenAPI document: that it is one, and says of each operation what it must."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_schema_validator import validate
from openapi_spec_validator import OpenAPIV31SpecValidator

from ldfi.experiments.api import problems
from ldfi.experiments.api.routes import CHANGING
from tests.experiments.api.test_roles import OPEN
from tests.kit.service import service

DOCUMENT: dict[str, Any] = service("sqlite://").openapi()
OPERATIONS = [
    (method.upper(), path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
]
each_operation = pytest.mark.parametrize(
    ("method", "path", "operation"), OPERATIONS, ids=[f"{m} {p}" for m, p, _ in OPERATIONS]
)


def test_the_document_is_openapi() -> None:
    assert [str(error) for error in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()] == []


def test_operations_have_names_of_their_own() -> None:
    names = [operation["operationId"] for _, _, operation in OPERATIONS]

    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+_[a-z_]+", name) for name in names)


@each_operation
def test_every_operation_says_what_it_is(method: str, path: str, operation: Any) -> None:
    assert len(operation["tags"]) == 1
    assert operation["operationId"].startswith(operation["tags"][0])
    assert 10 < len(operation["summary"]) < 100
    assert operation["description"].startswith(operation["summary"].split()[0])
    for parameter in operation.get("parameters", []):
        assert parameter.get("description"), parameter["name"]


@each_operation
def test_every_operation_declares_its_problems(method: str, path: str, operation: Any) -> None:
    statuses = {int(code) for code in operation["responses"]}
    errors = {status for status in statuses if status >= 400}
    for status in errors:
        assert operation["responses"][str(status)] == {
            "$ref": f"#/components/responses/Problem{status}"
        }
        described = DOCUMENT["components"]["responses"][f"Problem{status}"]
        assert list(described["content"]) == [problems.MEDIA_TYPE]
    assert len(statuses - errors) == 1
    if (method, path) not in OPEN:
        assert errors >= {401, 403, 429, 503}
    if "{" in path:
        assert 404 in errors
    if method in CHANGING:
        assert 413 in errors


@each_operation
def test_every_body_has_an_example_that_fits(method: str, path: str, operation: Any) -> None:
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = content["schema"]
        if schema.get("format") == "binary":
            continue
        name = schema.get("$ref", "").rpartition("/")[2]
        model = DOCUMENT["components"]["schemas"].get(name, schema)
        examples = model.get("examples", [content["example"]] if "example" in content else [])
        if not examples:  # made of those of its fields
            examples = [{f: p["examples"][0] for f, p in model["properties"].items()}]
        assert examples, kind
        for example in examples:
            validate(example, {**schema, "components": DOCUMENT["components"]})


def parts(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each schema within a schema, itself the first, and where it is."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, f"{path}/{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from parts(schema[name], f"{path}/{name}")
    for choice in schema.get("anyOf", []):
        yield from parts(choice, path)


SCHEMAS = [
    each for s, schema in DOCUMENT["components"]["schemas"].items() for each in parts(schema, s)
]


def test_every_property_says_what_it_is() -> None:
    """Not its name once more, and of a time that it is one."""
    wrong = []
    for path, schema in SCHEMAS:
        for name, part in schema.get("properties", {}).items():
            said = part.get("description", "")
            again = said.lower().strip(".").replace(" ", "_") == name
            timed = name.endswith("_at") and "number" in str(part)
            if len(said) < 8 or again or (timed and "Unix seconds" not in said):
                wrong.append((f"{path}/{name}", said))
    assert wrong == []


def test_every_bound_is_one_of_json_schema() -> None:
    """Those of a union come out as `ge` and `le`, or not at all: they belong to its parts."""
    given = [p["schema"] for _, _, each in OPERATIONS for p in each.get("parameters", [])]
    everywhere = [part for schema in given for _, part in parts(schema)]
    everywhere += [part for _, part in SCHEMAS]
    assert [each for each in everywhere if each.keys() & {"ge", "gt", "le", "lt"}] == []
    bounds = {"maximum", "maxLength", "pattern", "enum", "$ref", "maxItems"}
    free = [
        each
        for each in given
        if each.get("type") != "boolean" and not any(p.keys() & bounds for _, p in parts(each))
    ]
    assert free == []


@each_operation
def test_every_json_answer_has_an_example_fitting(method: str, path: str, operation: Any) -> None:
    for status, response in operation["responses"].items():
        for kind, content in response.get("content", {}).items():
            if kind == "application/json":
                example = content["example"]
                assert example != {} or path in {"/v1/traces", "/api/v1/openapi.json"}, status
                validate(example, {**content["schema"], "components": DOCUMENT["components"]})


def test_examples_of_problems_are_problems() -> None:
    for response in DOCUMENT["components"]["responses"].values():
        for example in response["content"][problems.MEDIA_TYPE]["examples"].values():
            validate(example["value"], dict(problems.SCHEMA))
