"""Fakes of what requests sends through."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import requests
import responses
import vcr
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

pytestmark = pytest.mark.ldfi
STOCK = "http://stock/17"
REVIEWS = "http://reviews/17"


def shop(session: requests.Session) -> None:
    """Fails without ``stock``; does without ``reviews``."""
    with contextlib.suppress(requests.RequestException):
        session.get(REVIEWS).raise_for_status()
    session.get(STOCK).raise_for_status()


@responses.activate
def test_responses() -> None:
    responses.get(STOCK)
    responses.get(REVIEWS)
    with requests.Session() as session:
        shop(session)


@pytest.mark.ldfi(kinds="delay", delay=30.0)
@responses.activate
def test_responses_delayed() -> None:
    responses.get(STOCK)
    requests.get(STOCK, timeout=0.05)


@responses.activate
def test_responses_retried() -> None:
    """urllib3's own retries are above the wire, and do not help where it stays down."""
    responses.get(STOCK)
    with requests.Session() as session:
        retry = Retry(total=2, status_forcelist=[503], backoff_factor=0)
        session.mount("http://", HTTPAdapter(max_retries=retry))
        session.get(STOCK).raise_for_status()
    assert len(responses.calls) == 1


class Fallback(HTTPAdapter):
    """Asks another host where the first one fails: an application's own adapter."""

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> Any:
        try:
            answer = super().send(request, *args, **options)
            if answer.status_code < 500:
                return answer
        except requests.RequestException:
            pass
        request.url = "http://backup/17"
        return super().send(request, *args, **options)


@responses.activate
def test_fallback_above_responses() -> None:
    responses.get(STOCK)
    responses.get("http://backup/17")
    with requests.Session() as session:
        session.mount("http://", Fallback())
        session.get(STOCK).raise_for_status()


def test_vcrpy(cassette: Path) -> None:
    with vcr.use_cassette(cassette, record_mode="none"), requests.Session() as session:
        shop(session)
