"""Runs that are being made: one in turn, or several abreast in threads of their own."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from ldfi.experiments.domain.campaign.exploration import Plan
from ldfi.explore.pytest.run import Execute, Run
from ldfi.fit.protocol.faults import Fault


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that is being made: what for, and under which faults. ``before``: what it came to in an
    earlier exploration."""

    plan: Plan
    faults: tuple[Fault, ...]
    before: Run | None = None


class Making(Protocol):
    """Makes runs, ``most`` at a time."""

    @property
    def most(self) -> int:
        """Return how many may be under way."""

    def begin(self, begun: Begun) -> None:
        """Begin a run."""

    def ended(self) -> tuple[Begun, Run]:
        """Wait for the first that ends."""


class InTurn:
    """Makes one run after the other, in the thread of whoever waits for it."""

    most = 1

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._begun: list[Begun] = []

    def begin(self, begun: Begun) -> None:
        """Begin a run: it is made when somebody waits for it."""
        self._begun.append(begun)

    def ended(self) -> tuple[Begun, Run]:
        """Make the run that was begun."""
        begun = self._begun.pop()
        return begun, self._execute(begun.faults)


class Abreast:
    """Makes as many runs at a time as are asked for, as long as the block lasts."""

    def __init__(self, execute: Execute, most: int) -> None:
        self.most = most
        self._execute = execute
        self._threads = ThreadPoolExecutor(most, "ldfi-run")
        self._under_way: dict[Future[Run], Begun] = {}

    def __enter__(self) -> Abreast:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Wait for what is under way; nobody wants to know what comes of it."""
        self._threads.shutdown(cancel_futures=True)

    def begin(self, begun: Begun) -> None:
        """Begin a run in a thread that is free."""
        self._under_way[self._threads.submit(self._execute, begun.faults)] = begun

    def ended(self) -> tuple[Begun, Run]:
        """Wait for the first run that ends. Raises what the run has raised."""
        done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
        first = next(each for each in self._under_way if each in done)
        return self._under_way.pop(first), first.result()
