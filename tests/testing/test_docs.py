"""The examples of docs/testing.md, run by pytest as a reader would: what it says happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
FAILING = {
    "test_an_item_is_shown_although_the_ratings_hang": "httpx.ReadTimeout: timed out",
    "test_of_a_point_with_a_misspelt_name": "never fired: error@shop>http:GET:rating/titles/*. "
    "The points that were reached are shop>http:GET:ratings/titles/*.",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of the page's code."""
    file = tmp_path_factory.mktemp("page") / "test_page.py"
    file.write_text("\n".join(_BLOCK.findall(PAGE.read_text("utf-8"))), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "--tb=line", str(file)],
        cwd=file.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def names() -> list[str]:
    return re.findall(r"^def (test_\w+)", PAGE.read_text("utf-8"), re.M)


@pytest.mark.parametrize("name", names())
def test_an_example_passes_or_fails_as_the_page_says(name: str, told: str) -> None:
    assert f"{'FAILED' if name in FAILING else 'PASSED'} test_page.py::{name}" in told, told


@pytest.mark.parametrize("reason", FAILING.values())
def test_it_fails_for_the_reason_that_is_shown(reason: str, told: str) -> None:
    assert reason in told


def test_the_page_has_examples() -> None:
    assert set(FAILING) < set(names())
