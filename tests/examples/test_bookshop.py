"""The bookshop, explored by three tests in three languages; killing its processes says the same.

With PostgreSQL and Redis behind two of its services where they are installed; in CI they must be.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import redis

from ldfi.cli.ports import free_row
from ldfi.explore.external.environment import variables
from ldfi.explore.external.services import Service, Services
from ldfi.explore.external.stamp import SharedKeys
from tests.examples.loading import loaded

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


BOOKSHOP = loaded(EXAMPLE / "bookshop.py")


class Shop:
    """The running shop, and what whoever explores it must be told."""

    def __init__(self, folder: Path, stored: Path) -> None:
        ports = len(BOOKSHOP.NAMES) + len(BOOKSHOP.STORES)
        self.first = free_row(ports + 1)
        self.receiving = f"127.0.0.1:{self.first + ports}"
        self.told = variables(KEYS, f"http://{self.receiving}")
        self.services = Services(self.told | {"TMPDIR": str(stored)}, folder, seconds=120)
        self.stores: list[str] = BOOKSHOP.stores()
        self.every: list[Service] = BOOKSHOP.services(self.first, self.stores)
        self.url = self.every[0].url
        planted = BOOKSHOP.planted(self.stores)
        self.planted = {frozenset(each) for each in planted}

    def environment(self) -> dict[str, str]:
        here = {"LDFI_RECEIVE": self.receiving, "BOOKSHOP_PORT": str(self.first)}
        return os.environ | self.told | here

    def broken(self, document: Mapping[str, Any]) -> set[frozenset[str]]:
        """The services and stores that the findings are about."""
        names = {str(service.port): service.name for service in self.every}
        return {
            frozenset(names.get(peer, peer) for peer in map(peer_of, finding["injected"]))
            for finding in document["findings"]
        }

    def sells(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/books/17", timeout=30) as answer:  # noqa: S310
                return bool(json.load(answer)["price"])
        except urllib.error.HTTPError:
            return False


def peer_of(fault: str) -> str:
    """The port that a call goes to, or the name of the database."""
    return fault.rpartition(":")[2].partition("/")[0]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with tempfile.TemporaryDirectory(prefix="bookshop-") as stored:
        Path(stored).chmod(0o755)  # PostgreSQL does not run as root, and has to get in
        made = Shop(tmp_path_factory.mktemp("logs"), Path(stored))
        try:
            made.services.start(*made.every)
            yield made
        finally:
            made.services.close()


def agreed(shop: Shop, document: Mapping[str, Any]) -> None:
    assert shop.broken(document) == shop.planted, document
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


def test_by_a_command(shop: Shop, tmp_path: Path) -> None:
    words = [
        *(sys.executable, "-m", "ldfi.cli", "explore", "--target", shop.url),
        *("--max-size", "3", "--report", str(tmp_path / "r.json"), "--json", "--"),
        *("node", "--test", "tests/page.test.mjs"),
    ]
    done = subprocess.run(
        words, cwd=EXAMPLE, env=shop.environment(), capture_output=True, text=True, check=False
    )

    assert done.returncode == 1, done.stdout + done.stderr
    agreed(shop, json.loads(done.stdout))


def test_masks_of_one_kind_are_found_by_that_kind(shop: Shop) -> None:
    masked: dict[str, str] = BOOKSHOP.masked(shop.stores)
    behind = {"sql:lost"} if "postgres" in shop.stores else set()
    kinds = {"refused", *behind, *masked.values()}
    words = [
        *(sys.executable, "-m", "ldfi.cli", "explore", "--target", shop.url),
        *("--max-size", "2", "--kind", ",".join(sorted(kinds)), "--json", "--", "tests/page.sh"),
    ]
    done = subprocess.run(
        words, cwd=EXAMPLE, env=shop.environment(), capture_output=True, text=True, check=False
    )

    assert done.returncode == 1, done.stdout + done.stderr
    document = json.loads(done.stdout)
    small = {each for each in shop.planted if len(each) <= 2}
    assert shop.broken(document) == small | {frozenset({each}) for each in masked}, document
    injected = {fault for finding in document["findings"] for fault in finding["injected"]}
    assert {fault.partition("@")[0] for fault in injected} == kinds
    assert document["runs"] <= MOST_RUNS


def test_a_redis_that_is_read_only_for_real_says_the_same(shop: Shop) -> None:
    if "redis" not in shop.stores:
        pytest.skip(BOOKSHOP.lack("redis"))
    (store,) = (each for each in shop.every if each.name == "redis")
    with redis.Redis(port=store.port) as client:
        client.replicaof("127.0.0.1", "1")  # where nobody is
        fails = not shop.sells()
        client.replicaof("NO", "ONE")
    assert fails
    assert shop.sells()


def test_without_a_store_the_shop_says_so_and_does_without_and_in_ci_it_refuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CI", raising=False)

    there = BOOKSHOP.stores()

    assert "redis" not in there
    assert "does without redis: redis-server is not installed" in capsys.readouterr().err
    every = {service.name: service for service in BOOKSHOP.services(1, [])}
    assert set(every) == set(BOOKSHOP.NAMES)
    assert every["stock"].command[1:] == every["recommendations"].command[1:] == ["shelf.py"]
    assert not {"POSTGRES", "REDIS"} & set(every["stock"].environment)
    monkeypatch.setenv("CI", "1")
    with pytest.raises(RuntimeError, match="redis-server is not installed"):
        BOOKSHOP.stores()


def test_killing_the_processes_says_the_same(shop: Shop) -> None:
    behind = {service.name: service for service in shop.every[1:]}
    larger = sorted((each for each in shop.planted if len(each) > 1), key=sorted)
    killed = [
        *(frozenset({name}) for name in behind),
        *dict.fromkeys(frozenset(p) for each in larger for p in itertools.combinations(each, 2)),
        *(each for each in larger if len(each) > 2),
    ]
    for names in killed:
        for name in names:
            process = shop.services.process(name)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        fails = any(each <= names for each in shop.planted)
        assert shop.sells() is not fails, names
        shop.services.start(*(behind[name] for name in names))
    assert shop.sells()
