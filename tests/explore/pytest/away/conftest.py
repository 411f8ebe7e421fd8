"""Shops in processes of their own: one store, and a page for each thing that may be wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

import httpx
import pytest

from ldfi.cli.ports import free_port
from ldfi.explore.external.services import Service, Services

PROGRAM = (sys.executable, "-m", "tests.explore.external.shop")
PAGES = os.environ.get("PAGES", "page").split()


@pytest.fixture(scope="session")
def urls(ldfi_services: Services) -> dict[str, str]:
    """Where each page is; they are named by what is wrong with them."""
    store = Service("store", (*PROGRAM, "store"), free_port(), "/health")
    services = {
        name: Service(
            name,
            (*PROGRAM, "page"),
            free_port(),
            "/health",
            {"SHOP": name, "STORE": store.url},
        )
        for name in PAGES
    }
    ldfi_services.start(store, *services.values())
    return {name: service.url for name, service in services.items()}


@pytest.fixture
def ask(urls: dict[str, str]) -> Iterator[Callable[[str], httpx.Response]]:
    """Asks one of the pages."""
    with httpx.Client(trust_env=False, timeout=20) as client:
        yield lambda name: client.get(f"{urls[name]}/page/17")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
