"""axe-core, which holds a page against the accessibility rules that a program can check.

Taken from npm into the cache the first time, as a fixed version. https://github.com/dequelabs/axe-core
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.kit.browser import missing

VERSION = "4.14.1"
GRAVE = {"serious", "critical"}


def source() -> str:
    """The text of axe-core; skips, or fails in CI, where it cannot be had."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ldfi"
    cached = cache / f"axe-core-{VERSION}.js"
    if not cached.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            _install(Path(folder))
            (Path(folder) / "node_modules/axe-core/axe.min.js").replace(cached)
    return cached.read_text(encoding="utf-8")


def _install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        missing("npm is not installed, and axe-core comes from there")
    (folder / "package.json").write_text("{}", encoding="utf-8")
    options = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"]
    try:
        subprocess.run(
            [npm, "install", *options, f"axe-core@{VERSION}"],
            cwd=folder,
            capture_output=True,
            timeout=90,
            check=True,
        )
    except subprocess.SubprocessError:
        missing(f"npm cannot install axe-core@{VERSION} here")


def grave_violations(page: Page, axe: str) -> list[str]:
    """What is wrong with the page as it is now, serious or critical: rule, why, and where."""
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: {node['target']} {node['html'][:160]}"
        for rule in found["violations"]
        if rule["impact"] in GRAVE
        for node in rule["nodes"]
    ]
