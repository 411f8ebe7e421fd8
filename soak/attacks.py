"""The attacks of a siege, each by itself and all at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from soak.sites import Site, few_descriptors

STEP: Final = 120
"""Seconds by which a clock is set."""


On = Callable[[Site], AbstractContextManager[None]]
"""Attacks for as long as its block lasts."""


@dataclass(frozen=True, slots=True)
class Attack:
    """``on``: while these go on, people are treated; they have ``before_halt`` seconds for that.
    ``shut``: with these nobody new is, so they begin just before somebody halts. ``steps``: it sets
    the clock."""

    name: str
    on: tuple[On, ...] = ()
    shut: tuple[On, ...] = ()
    before_halt: float = 0.0
    steps: bool = False


def _set_by(seconds: int) -> On:
    @contextmanager
    def on(them: Site) -> Iterator[None]:
        them.offset.write_text(f"{seconds:+d}")
        yield
        them.offset.write_text("+0")

    return on


@contextmanager
def _in_a_tick(them: Site) -> Iterator[None]:
    """Set the clock while a tick waits for its database, back and forward again."""
    for seconds in (-STEP, 0, -STEP):
        with them.held():
            time.sleep(0.3)
            them.offset.write_text(f"{seconds:+d}")
            time.sleep(1.2)  # it is read once a second
        time.sleep(0.5)
    yield
    them.offset.write_text("+0")


def _by(attacker: str) -> On:
    @contextmanager
    def on(them: Site) -> Iterator[None]:
        _start(them, attacker)
        try:
            yield
            them.processes.check()
        finally:
            them.processes.kill(attacker)

    return on


def _start(them: Site, attacker: str, *more: str) -> None:
    """Start it; it attacks from now on, or is ready to."""
    program = [sys.executable, "-m", "soak.attackers", attacker]
    options = ["--url", them.url, "--door", them.door, "--kafka", them.kafka]
    said = them.processes.start(attacker, [*program, *options, *more], {})
    assert said.readline() == "ready\n"


@contextmanager
def silent(them: Site) -> Iterator[Path]:
    """Have silent connections ready: they are opened when the file is there that this gives."""
    begin = them.offset.with_name("begin")
    begin.unlink(missing_ok=True)
    _start(them, "silence", "--begin", str(begin))
    try:
        yield begin
    finally:
        them.processes.kill("silence")


@contextmanager
def _silence(them: Site) -> Iterator[None]:
    with few_descriptors(them):
        them.offset.with_name("begin").touch()
        yield


@contextmanager
def _full_disk(them: Site) -> Iterator[None]:
    with them.disk.full():
        yield
    them.mend()


POISON: Final = Attack("poisoned traffic", on=(_by("poison"),), before_halt=8.0)
FLOOD: Final = Attack("a flood of garbage", on=(_by("flood"),), before_halt=8.0)
SILENCE: Final = Attack("silent connections", shut=(_silence,))
DISK: Final = Attack("a full disk", shut=(_full_disk,))
BACK: Final = Attack("the clock is set back", on=(_set_by(-STEP),), before_halt=6.0, steps=True)
TICK: Final = Attack(
    "the clock is set within a tick", on=(_in_a_tick,), before_halt=5.0, steps=True
)
FORWARD: Final = Attack(
    "the clock is set forward", on=(_set_by(STEP),), before_halt=6.0, steps=True
)
ALL: Final = Attack(
    "all at once",
    on=(*POISON.on, *FLOOD.on, *BACK.on),
    shut=(*SILENCE.shut, *DISK.shut),
    before_halt=6.0,
    steps=True,
)
EVERY: Final = (POISON, FLOOD, SILENCE, DISK, BACK, TICK, ALL, FORWARD)
"""Forward last: a clock that has gone ahead comes back by a tenth of the time only, and what is on
record meanwhile cannot be held against the witness's clock."""
