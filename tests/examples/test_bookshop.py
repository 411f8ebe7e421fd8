"""The bookshop, explored by three tests in three languages; killing its processes says the same."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ldfi.experiments.elsewhere.environment import variables
from ldfi.experiments.elsewhere.services import Service, Services
from ldfi.experiments.elsewhere.stamp import SharedKeys

EXAMPLE = Path(__file__).parents[2] / "examples" / "bookshop"
KEYS = SharedKeys("test:0123456789abcdef0123456789abcdef")
MOST_RUNS = 60

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        shutil.which("node") is None and not os.environ.get("CI"), reason="there is no Node"
    ),
]


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bookshop", EXAMPLE / "bookshop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BOOKSHOP = loaded()


def free(many: int) -> int:
    """The first of so many ports in a row that nobody uses."""
    for first in range(20_000, 30_000, many):
        with socket.socket() as probe:
            if all(probe.connect_ex(("127.0.0.1", first + i)) for i in range(many)):
                return first
    raise RuntimeError("there are no ports")


class Shop:
    """The running shop, and what whoever explores it must be told."""

    def __init__(self, folder: Path) -> None:
        self.first = free(len(BOOKSHOP.NAMES) + 1)
        self.receiving = f"127.0.0.1:{self.first + len(BOOKSHOP.NAMES)}"
        self.told = variables(KEYS, f"http://{self.receiving}")
        self.services = Services(self.told, folder, seconds=120)
        self.every: list[Service] = BOOKSHOP.services(self.first)
        self.url = self.every[0].url

    def environment(self) -> dict[str, str]:
        here = {"LDFI_RECEIVE": self.receiving, "BOOKSHOP_PORT": str(self.first)}
        return os.environ | self.told | here

    def broken(self, document: Mapping[str, Any]) -> set[frozenset[str]]:
        """The services that the findings are about."""
        names = {str(service.port): service.name for service in self.every}
        return {
            frozenset(names[fault.rpartition(":")[2].partition("/")[0]] for fault in each)
            for each in (finding["injected"] for finding in document["findings"])
        }

    def sells(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/books/17", timeout=30) as answer:  # noqa: S310
                return bool(json.load(answer)["price"])
        except urllib.error.HTTPError:
            return False


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    made = Shop(tmp_path_factory.mktemp("logs"))
    try:
        made.services.start(*made.every)
        yield made
    finally:
        made.services.close()


def planted() -> set[frozenset[str]]:
    return {frozenset(each) for each in BOOKSHOP.PLANTED}


def agreed(shop: Shop, document: Mapping[str, Any]) -> None:
    assert shop.broken(document) == planted(), document
    assert document["runs"] <= MOST_RUNS
    assert document["exhaustive"] > 500


def test_by_pytest(shop: Shop, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--ldfi-report={report}"],
        cwd=EXAMPLE,
        env=shop.environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    (document,) = json.loads(report.read_text())["tests"]
    agreed(shop, document)


@pytest.mark.parametrize("command", [("node", "--test", "tests/page.test.mjs"), ("tests/page.sh",)])
def test_by_a_command(shop: Shop, command: tuple[str, ...], tmp_path: Path) -> None:
    words = [
        *(sys.executable, "-m", "ldfi.experiments.cli", "explore", "--target", shop.url),
        *("--max-size", "3", "--report", str(tmp_path / "r.json"), "--json", "--", *command),
    ]
    done = subprocess.run(
        words, cwd=EXAMPLE, env=shop.environment(), capture_output=True, text=True, check=False
    )

    assert done.returncode == 1, done.stdout + done.stderr
    agreed(shop, json.loads(done.stdout))


def test_a_mask_of_one_status_is_found_by_that_status(shop: Shop) -> None:
    words = [
        *(sys.executable, "-m", "ldfi.experiments.cli", "explore", "--target", shop.url),
        *("--max-size", "2", "--kind", "refused,status:500", "--json", "--", "tests/page.sh"),
    ]
    done = subprocess.run(
        words, cwd=EXAMPLE, env=shop.environment(), capture_output=True, text=True, check=False
    )

    assert done.returncode == 1, done.stdout + done.stderr
    document = json.loads(done.stdout)
    masked = frozenset({"recommendations"})
    small = {each for each in planted() if len(each) <= 2}
    assert shop.broken(document) == small | {masked}, document
    kinds = {fault.partition("@")[0] for f in document["findings"] for fault in f["injected"]}
    assert kinds == {"refused", "status:500"}


def test_killing_the_processes_says_the_same(shop: Shop) -> None:
    behind = {service.name: service for service in shop.every[1:]}
    prices = ("prices", "pricecache", "listprices")
    killed = [
        *(frozenset({name}) for name in behind),
        *map(frozenset, itertools.combinations(prices, 2)),
        *(each for each in planted() if len(each) > 1),
    ]
    for names in killed:
        for name in names:
            process = shop.services.process(name)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        fails = any(each <= names for each in planted())
        assert shop.sells() is not fails, names
        shop.services.start(*(behind[name] for name in names))
    assert shop.sells()
