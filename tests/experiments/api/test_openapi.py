"""The OpenAPI document: that it is one, and says of each operation what it must."""

from __future__ import annotations

import re
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
        given = parameter["schema"]
        assert parameter.get("description") or given.get("examples"), parameter["name"]


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


def test_examples_of_problems_are_problems() -> None:
    for response in DOCUMENT["components"]["responses"].values():
        for example in response["content"][problems.MEDIA_TYPE]["examples"].values():
            validate(example["value"], dict(problems.SCHEMA))
