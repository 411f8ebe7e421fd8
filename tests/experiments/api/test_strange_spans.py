"""What strangers make services write onto spans costs the service nothing else."""

from __future__ import annotations

import json

import httpx
import pytest

from ldfi.lineage.readers.formats import read_message
from tests.kit.service import client_of, service
from tests.lineage.troubles import DOCUMENTS, ODD, WRITERS, cases, places, with_instead

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


def test_spans_made_of_anything_are_taken_or_counted_as_rejected() -> None:
    write, around = DOCUMENTS["otlp"]
    odd = [
        with_instead(write(number), path, value)
        for number, value in enumerate(ODD, start=1)
        for path in places(write(number))
    ]
    body = json.dumps(around(odd)).encode()
    batch = read_message(body)
    assert len(batch.spans) + batch.rejected == len(odd)

    with client_of(service("sqlite://", quiet=0.01)) as client:
        answer = client.post("/v1/traces", content=body, headers={"content-type": TYPES["otlp"]})

    assert answer.status_code == 200
    assert int(answer.json()["partialSuccess"]["rejectedSpans"]) == batch.rejected
