"""The service held against its OpenAPI document: requests made up by schemathesis.

A bounded, repeatable sample. ``LDFI_API_EXAMPLES=1000`` makes so many up for each operation,
others each time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, assume, settings
from openapi_schema_validator import validate
from schemathesis.config import SchemathesisConfig

from ldfi.experiments.api import events, problems
from ldfi.testing.live_service import served
from tests.kit.service import GIVEN, Unlimited, bearer, live_through, service
from tests.scenarios.replayed import TRACE, replayed

pytestmark = pytest.mark.long

EXAMPLES = int(os.environ.get("LDFI_API_EXAMPLES", "0"))
DOCUMENT: dict[str, Any] = service("sqlite://").openapi()


@schemathesis.serializer("application/x-protobuf")
def protobuf(_context: Any, value: Any) -> bytes:
    """Whatever is made up for a binary body."""
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service that has a past, with streams that end soon and no limit on how often one calls."""
    url = f"sqlite:///{tmp_path_factory.mktemp('api') / 'x.sqlite3'}"
    live_through(url)
    app = service(url)
    app.state.rate_limiter = Unlimited()
    with pytest.MonkeyPatch.context() as patch, served(app) as address:
        patch.setattr(events, "STREAM_SECONDS", 0.05)
        patch.setattr(events, "LOOK_SECONDS", 0.05)
        yield address


@pytest.fixture(scope="module")
def known(address: str) -> dict[str, Iterator[str]]:
    """Parameter of a path → ids that there are, over and over."""
    with httpx.Client(base_url=address, headers=bearer(GIVEN["admin"]), trust_env=False) as client:
        window = {"reason": "upgrade", "down": ["nothing"]}
        client.post("/api/v1/maintenance", json=window).raise_for_status()
        client.post("/api/v1/tokens", json={"name": "kim", "role": "viewer"}).raise_for_status()
        client.post("/v1/traces", json=replayed("api>http:GET:layout/")).raise_for_status()
        result = {"ldfi": "measurement", "version": 1, "classes": [], "doubts": []}
        kept = client.post("/api/v1/replays/runs", json={"document": result})
        kept.raise_for_status()
        while client.get(f"/api/v1/replays/{TRACE}").status_code == 404:
            time.sleep(0.05)
        paths = {"window": "maintenance", "replay": "replays/runs"}
        paths |= {name: f"{name}s" for name in ("campaign", "experiment", "finding", "token")}
        lists = {
            f"{name}_id": [item["id"] for item in client.get(f"/api/v1/{path}").json()["items"]]
            for name, path in paths.items()
        }
    lists["trace_id"] = [TRACE]
    assert all(lists.values()), lists
    return {name: cycle(ids) for name, ids in lists.items()}


def made_up(mode: str) -> Any:
    """The document as a source of requests: ``positive`` ones fit it, ``negative`` ones do not."""
    # What a schema cannot say (a cursor, a time zone, a point that is never reached) is refused as
    # well; bad metrics are refused one by one within their batch.
    statuses = {"expected-statuses": ["2xx", "400", "404", "409", "422"]}
    taken = {"checks": {"negative_data_rejection": {"enabled": False}}}
    config = {
        "generation": {"mode": mode, "with-security-parameters": False},
        "checks": {"positive_data_acceptance": statuses},
        "operations": [{"include-operation-id": "ingest_receive_device_metrics", **taken}],
    }
    loaded = SchemathesisConfig.from_dict(config)
    return schemathesis.openapi.from_dict(DOCUMENT, config=loaded)


FITTING, UNFITTING = made_up("positive"), made_up("negative")
bounded = settings(
    max_examples=EXAMPLES or 8,
    derandomize=not EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

SERVER_TAKES = 60_000
"""Longer request lines are refused by the HTTP server itself, before there is an application."""


def checked(case: Any, address: str) -> None:
    """Send it; the answer must be one that the document has."""
    response = case.call(base_url=address, headers=bearer(GIVEN["admin"]), timeout=40)
    assume(len(response.request.url) < SERVER_TAKES)
    if response.status_code >= 400:
        assert response.headers["content-type"] == [problems.MEDIA_TYPE]
        validate(response.json(), dict(problems.SCHEMA))
    case.validate_response(response, headers=bearer(GIVEN["admin"]))


@FITTING.parametrize()  # type: ignore[untyped-decorator]
@bounded
def test_what_fits_is_answered_so(case: Any, address: str, known: dict[str, Iterator[str]]) -> None:
    for name in case.path_parameters:
        case.path_parameters[name] = next(known[name])
    checked(case, address)


@UNFITTING.parametrize()  # type: ignore[untyped-decorator]
@bounded
def test_what_does_not_fit_the_document_is_refused(case: Any, address: str) -> None:
    checked(case, address)
