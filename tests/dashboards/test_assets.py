"""What is vendored is what was released, and all of it is said where it comes from."""

from __future__ import annotations

import hashlib
import re

from ldfi.dashboards.assets import FOLDER, asset
from ldfi.dashboards.render import TEMPLATES

VENDOR = FOLDER / "vendor"
ROW = re.compile(r"^\| (\S+) \| (\S+) \| (\S+) \| `(\S+)` \| `([0-9a-f]{64})` \|$", re.MULTILINE)
ROWS = ROW.findall((VENDOR / "README.md").read_text())


def test_every_vendored_file_is_the_released_one() -> None:
    assert len(ROWS) >= 5
    for package, version, _, name, digest in ROWS:
        content = (VENDOR / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest, (package, version, name)


def test_every_vendored_file_is_in_the_list_and_has_a_licence() -> None:
    listed = {name for _, _, _, name, _ in ROWS}
    there = {
        str(file.relative_to(VENDOR))
        for file in VENDOR.glob("*/*")
        if not file.name.startswith("LICENSE")
    }
    assert there == listed
    for folder in {name.partition("/")[0] for name in listed}:
        assert "opyright" in (VENDOR / folder / "LICENSE").read_text() or folder == "htmx.org"


def test_templates_name_assets_that_are_there() -> None:
    named = set()
    for template in TEMPLATES.glob("*.html"):
        named |= set(re.findall(r"asset\('([^']+)'\)", template.read_text()))
    assert {"style.css", "page.js", "live.js"} <= named
    for name in named:
        assert asset(name).startswith(f"/static/{name}?v=")
