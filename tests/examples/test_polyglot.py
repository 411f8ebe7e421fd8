"""The polyglot shop, explored by a test of its page: what injectors in three languages and two
proxies find is what happens when processes are killed. The short form of ``make polyglot``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldfi.cli.ports import free_row
from ldfi.explore.external.environment import variables
from ldfi.explore.external.services import Service, Services
from ldfi.explore.external.stamp import SharedKeys
from tests.examples.loading import loaded

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = EXAMPLES / "polyglot"
KEYS = SharedKeys("test:0123456789abcdef0123456789abcdef")
MOST_RUNS = 40


TOGETHER = loaded(EXAMPLES / "together.py")
POLYGLOT = loaded(EXAMPLE / "polyglot.py")

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        bool(POLYGLOT.missing()) and not os.environ.get("CI"), reason=POLYGLOT.missing()
    ),
]


class Shop:
    """The running shop, and what whoever explores it must be told."""

    def __init__(self, logs: Path, stored: Path) -> None:
        first: int = free_row(len(POLYGLOT.LISTENING) + 1)
        self.receiving = f"127.0.0.1:{first + len(POLYGLOT.LISTENING)}"
        self.told = variables(KEYS, f"http://{self.receiving}")
        self.running = Services(self.told | {"TMPDIR": str(stored)}, logs, seconds=120)
        there = POLYGLOT.parts()
        self.every: list[Service] = POLYGLOT.services(first, there)
        self.planted = set(map(frozenset, POLYGLOT.planted(there)))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    POLYGLOT.build()
    with tempfile.TemporaryDirectory(prefix="polyglot-") as stored:
        Path(stored).chmod(0o755)  # PostgreSQL does not run as root, and has to get in
        made = Shop(tmp_path_factory.mktemp("logs"), Path(stored))
        try:
            made.running.start(*made.every)
            yield made
        finally:
            made.running.close()


def test_what_is_found_is_what_is_planted(shop: Shop) -> None:
    words = [
        *(sys.executable, "-m", "ldfi.cli", "explore", "--json"),
        *("--target", shop.every[0].url, "--", "tests/page.sh"),
    ]
    environment = os.environ | shop.told | {"LDFI_RECEIVE": shop.receiving}
    done = subprocess.run(
        words, cwd=EXAMPLE, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1, done.stdout + done.stderr
    document = json.loads(done.stdout)
    found = {POLYGLOT.broken(shop.every, each["injected"]) for each in document["findings"]}
    assert found == shop.planted, document
    assert document["runs"] <= MOST_RUNS
    assert document["never_fired"] == []


def test_killing_the_processes_says_the_same(shop: Shop) -> None:
    there = {each.name for each in shop.every}
    stand_ins = [{name} for names in shop.planted if len(names) > 1 for name in names]
    for names in map(frozenset, [*stand_ins, *shop.planted]):
        assert names <= there
        with TOGETHER.killed(shop.running, shop.every, names):
            assert POLYGLOT.shows(shop.every) is not (names in shop.planted), names
    assert POLYGLOT.shows(shop.every)


def test_without_a_part_the_shop_says_so_and_does_without_and_in_ci_it_refuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(POLYGLOT, "envoy", lambda: None)
    monkeypatch.delenv("CI", raising=False)

    assert "envoy" not in POLYGLOT.parts()
    assert "does without envoy: Envoy is not installed" in capsys.readouterr().err
    every = {service.name: service for service in POLYGLOT.services(1, [])}
    assert not {"envoy", "processor", "postgres"} & set(every)
    assert not {"PRICES", "POSTGRES"} & set(every["shop"].environment)
    assert {"prices"} not in POLYGLOT.planted([])
    monkeypatch.setenv("CI", "1")
    with pytest.raises(RuntimeError, match="Envoy is not installed"):
        POLYGLOT.parts()
