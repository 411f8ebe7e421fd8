"""What strangers make services write onto spans costs the service nothing else."""

from __future__ import annotations

import httpx
import pytest

from ldfi.lineage.readers.formats import read_message
from tests.kit.service import client_of, service
from tests.lineage.troubles import WRITERS, cases

TYPES = {"protobuf": "application/x-protobuf", "otlp": "application/json"}


@pytest.mark.parametrize("written", TYPES)
def test_a_batch_with_every_trouble_in_it_is_taken_whole(written: str) -> None:
    many = list(cases())[::151]
    body = WRITERS[written](many)
    assert len(read_message(body).spans) == len(many)

    with client_of(service("sqlite://")) as client:
        answer: httpx.Response = client.post(
            "/v1/traces", content=body, headers={"content-type": TYPES[written]}
        )

    assert (answer.status_code, answer.content) == (200, b"" if written == "protobuf" else b"{}")
