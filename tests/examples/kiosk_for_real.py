"""What is found by injection, held against what happens when the same is caused for real.

The kiosk (``examples/kiosk``) is explored as anybody would, ``ldfi explore --kind …``. Then every
single service behind its page and every pair fails for real, in every combination of the kinds: a
service that is to refuse is killed with SIGKILL, and started again; the others are turned by the
switch inside of them. The page must be gone exactly where a finding says so.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from ldfi.cli.ports import free_row
from ldfi.explore.external import environment
from ldfi.explore.external.services import Service, Services
from ldfi.explore.external.stamp import SharedKeys

EXAMPLE = Path(__file__).parents[2] / "examples" / "kiosk"
EXPORTED = "20"
"""Milliseconds between two exports of a service: it is waited for that after each run."""
KILLED = "refused"
SIZE = 2

Set = frozenset[str]
"""Of ``kind@service``."""


def loaded() -> ModuleType:
    """Import the example."""
    spec = importlib.util.spec_from_file_location("kiosk", EXAMPLE / "kiosk.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


KIOSK = loaded()


@dataclass(frozen=True)
class Compared:
    """What was caused for real (``gone``: whether the page was) and what exploring found.
    ``is_well``: so is the page when all is mended."""

    gone: dict[Set, bool]
    found: set[Set]
    kills: int
    is_well: bool


class Standing:
    """The kiosk as it runs. What is broken in it is broken for real."""

    def __init__(self, logs: Path) -> None:
        first = free_row(len(KIOSK.NAMES) + 1)
        receiving = f"127.0.0.1:{first + len(KIOSK.NAMES)}"
        keys = SharedKeys.of_environment()
        self.told = environment.variables(keys, f"http://{receiving}")
        self.told |= {environment.INTERVAL: EXPORTED, environment.RECEIVE: receiving}
        every: list[Service] = KIOSK.services(first)
        self.page, self.behind = every[0], {each.name: each for each in every[1:]}
        self.services = Services(self.told, logs, seconds=120)
        self.services.start(*every)
        self.kills = 0
        self._broken: dict[str, str] = {}

    def explore(self, kinds: Collection[str]) -> dict[str, Any]:
        """Explore the page by ``ldfi explore``, and return what that says."""
        words = [
            *(sys.executable, "-m", "ldfi.cli", "explore", "--json"),
            *("--target", self.page.url, "--max-size", str(SIZE), "--kind", ",".join(kinds)),
            *("--time-limit", "1800", "--", "tests/page.sh"),
        ]
        done = subprocess.run(
            words,
            cwd=EXAMPLE,
            env=os.environ | self.told,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 1:  # nothing found, or it could not be said
            raise RuntimeError(f"exit code {done.returncode}: {done.stdout}{done.stderr}")
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def found(self, document: Mapping[str, Any]) -> set[Set]:
        """Return the findings, with services in place of points: each has one."""
        names = {str(service.port): service.name for service in self.behind.values()}

        def named(fault: str) -> str:
            kind, _, point = fault.partition("@")
            return f"{kind}@{names[point.rpartition(':')[2].partition('/')[0]]}"

        return {frozenset(map(named, each["injected"])) for each in document["findings"]}

    def breaks(self, faults: Set) -> bool:
        """Have services fail so, and all others be well; tell whether the page is gone."""
        wanted = {service: kind for kind, _, service in (f.partition("@") for f in faults)}
        turned = [name for name in self.behind if wanted.get(name) != self._broken.get(name)]
        started = [name for name in turned if self._broken.get(name) == KILLED]
        self.services.start(*(self.behind[name] for name in started))
        for name in turned:
            kind = wanted.get(name, "")
            if kind == KILLED:
                self._kill(name)
            elif kind or name not in started:
                self._turn(name, kind)
        self._broken = wanted
        return self._is_gone()

    def _kill(self, name: str) -> None:
        process = self.services.process(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.kills += 1

    def _turn(self, name: str, kind: str) -> None:
        request = urllib.request.Request(  # noqa: S310 - a service of the example's
            f"{self.behind[name].url}/switch", kind.encode(), method="PUT"
        )
        with urllib.request.urlopen(request, timeout=10):  # noqa: S310
            pass

    def _is_gone(self) -> bool:
        try:
            with urllib.request.urlopen(self.page.url, timeout=30) as answer:  # noqa: S310
                return int(answer.status) != 200
        except urllib.error.HTTPError:
            return True


@contextmanager
def standing() -> Iterator[Standing]:
    """Start the kiosk, and stop it."""
    with TemporaryDirectory() as logs:
        running = Standing(Path(logs))
        try:
            yield running
        finally:
            running.services.close()


def causes(services: Sequence[str], kinds: Sequence[str]) -> Iterator[Set]:
    """List every single service and every pair, in every way to fail. What is killed stays so for
    as long as it can: neighbours in this order differ in few services."""
    yield frozenset()
    for size in range(1, SIZE + 1):
        for names in combinations(services, size):
            for ways in product(kinds, repeat=size):
                yield frozenset(map("{}@{}".format, ways, names))


def planted(kinds: Iterable[str]) -> set[Set]:
    """List what is planted in the example, as far as these kinds show it."""
    found = set[Set]()
    for each in KIOSK.PLANTED:
        ways = [[f"{kind}@{name}" for kind in kinds if kind in own] for name, own in each.items()]
        found |= set(map(frozenset, product(*ways)))
    return found


def differing(real: Mapping[Set, bool], found: Collection[Set], *, each_kind: bool) -> list[Set]:
    """List what says one thing when it is caused (``real``: whether the page is gone) and another
    by the findings. Without ``each_kind`` nothing is claimed of a finding's services in other ways.
    """
    said = {each: any(finding <= each for finding in found) for each in real}
    differ = (each for each, gone in real.items() if gone != said[each])
    return [each for each in differ if each_kind or said[each] or not presumed(each, found)]


def presumed(faults: Set, found: Iterable[Set]) -> bool:
    """Return whether a finding is about these services, so that nothing is claimed of its kinds."""
    return any(_services(each) <= _services(faults) for each in found)


def _services(faults: Set) -> Set:
    return frozenset(each.partition("@")[2] for each in faults)


def compared(kinds: Sequence[str]) -> Compared:
    """Explore, cause everything for real, and compare."""
    with standing() as kiosk:
        found = kiosk.found(kiosk.explore(kinds))
        gone = {each: kiosk.breaks(each) for each in causes(list(kiosk.behind), kinds)}
        return Compared(gone, found, kiosk.kills, is_well=not kiosk.breaks(frozenset()))
