"""What is vendored is what was released, and all of it is said where it comes from."""

from __future__ import annotations

import asyncio
import hashlib
import re

import pytest
from httpx import ASGITransport, AsyncClient, Response
from starlette.applications import Starlette
from starlette.routing import Mount

from ldfi.dashboards.assets import FOLDER, Assets, asset, content
from ldfi.dashboards.render import ROOT

VENDOR = FOLDER / "vendor"
ROW = re.compile(r"^\| (\S+) \| (\S+) \| (\S+) \| `(\S+)` \| `([0-9a-f]{64})` \|$", re.MULTILINE)
ROWS = ROW.findall((VENDOR / "README.md").read_text())


def test_every_vendored_file_is_the_released_one() -> None:
    assert len(ROWS) >= 5
    for package, version, _, name, digest in ROWS:
        released = content(f"vendor/{name}")
        assert hashlib.sha256(released).hexdigest() == digest, (package, version, name)


def test_every_vendored_file_is_in_the_list_and_has_a_licence() -> None:
    listed = {name for _, _, _, name, _ in ROWS}
    there = {
        str(file.relative_to(VENDOR)).removesuffix(".gz")
        for file in VENDOR.glob("*/*")
        if not file.name.startswith("LICENSE")
    }
    assert there == listed
    for folder in {name.partition("/")[0] for name in listed}:
        assert "opyright" in (VENDOR / folder / "LICENSE").read_text() or folder == "htmx.org"


def test_templates_name_assets_that_are_there() -> None:
    named = set()
    for template in ROOT.rglob("*.html"):
        named |= set(re.findall(r"asset\('([^']+)'\)", template.read_text()))
    assert {"style.css", "page.js", "live.js"} <= named
    for name in named:
        assert asset(name).startswith(f"/static/{name}?v=")


PACKED = "vendor/cytoscape/cytoscape.min.js"


@pytest.mark.parametrize("takes", ["gzip", "br, gzip;q=0.5", "*", "GZIP ; q=1", "x, *;q=0.1"])
def test_whoever_takes_gzip_gets_a_script_as_it_is_packed(takes: str) -> None:
    answer = fetched({"Accept-Encoding": takes})

    assert answer.content == content(PACKED)  # httpx has unpacked it
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) < len(answer.content) / 2
    assert_script(answer)


@pytest.mark.parametrize("takes", ["", "identity", "gzip;q=0", "br", "gzip;q=0, *", "gzip;q=x"])
def test_whoever_does_not_gets_it_unpacked(takes: str) -> None:
    answer = fetched({"Accept-Encoding": takes})

    assert answer.content == content(PACKED)
    assert "content-encoding" not in answer.headers
    assert_script(answer)


def fetched(headers: dict[str, str]) -> Response:
    async def fetch() -> Response:
        app = Starlette(routes=[Mount("/static", Assets())])
        async with AsyncClient(transport=ASGITransport(app), base_url="http://ldfi") as client:
            return await client.get(asset(PACKED), headers=headers)

    return asyncio.run(fetch())


def assert_script(answer: Response) -> None:
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["vary"] == "Accept-Encoding"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_packed_script_that_has_not_changed_is_not_sent_again() -> None:
    first = fetched({})
    again = fetched({"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")
