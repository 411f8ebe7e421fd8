"""Kills the service again and again, and checks what it leaves behind.

A kill is either *blind*, at an instant drawn at random, now and then before the service is even up;
or *aimed*: right after a certain row has appeared in the audit, read through a connection of our
own. The service is started again at once. After each kill, while nobody writes, and again once it
is up, the database is read and checked; the witness's notes are checked at the end.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from soak import checks
from soak.checks import Bounds, Findings, Kill
from soak.record import Reader, Record
from soak.service import LEASE
from soak.treated import Treated, noted

AIMS = {
    "experiment armed": 3,
    "experiment observing": 2,
    "experiment settling": 3,
    "experiment harmful": 3,
    "experiment tolerated": 2,
    "experiment aborted": 1,
    "finding suspected": 1,
    "finding open": 2,
    "campaign finished": 1,
}
"""What appears in the audit right before an aimed kill, and how often it is chosen."""

AIMING = 2.0
"""An aimed kill waits so many times as long as a blind one at most for what it is aimed at."""

CAMPAIGNS = 5
"""So many in a row are waited for after the last kill, while some of it stays inconclusive."""

LOOK_SECONDS = 0.01
"""How often an aimed kill looks for its row."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``life``: seconds that the service lives after it is up, at least and at most. ``warm_up``:
    seconds before the first kill, to learn the traffic in. ``patience``: seconds without any
    progress on record after which what is not done yet never will be. ``treated_first``: no kill
    before somebody was treated."""

    kills: int
    life: tuple[float, float]
    seed: int = 0
    warm_up: float = 0.0
    patience: float = 180.0
    treated_first: bool = False


class Victim(Protocol):
    """What is killed: the service as one process, or one part of many."""

    @property
    def database(self) -> str:
        """Return where the record is."""

    @property
    def hour(self) -> int:
        """The budget of members in any hour."""

    @property
    def started_in(self) -> list[float]:
        """The seconds that each start took."""

    @property
    def log(self) -> str:
        """Return the log of all lives."""

    def kill(self) -> float:
        """Kill it with SIGKILL; return when it was surely dead, Unix seconds."""

    def start(self) -> None:
        """Start it again."""

    def ready(self) -> float:
        """Wait until all is well; return the seconds that took."""

    def check(self) -> None:
        """Fail where something has ended by itself."""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the API as an operator."""


@dataclass
class Assault:
    """``campaign`` is what is started, as the API takes it, whenever none runs any more."""

    service: Victim
    notes: Path
    campaign: Mapping[str, Any]
    plan: Plan
    slack: float = 0.0
    say: Callable[[str], None] = lambda _line: None
    kills: list[Kill] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    wrong: dict[str, None] = field(default_factory=dict)
    """What was found wrong, each once, in the order found."""
    last: Record = field(default_factory=lambda: Record(0.0))

    @property
    def bounds(self) -> Bounds:
        """Return the bounds that must be kept."""
        return Bounds(LEASE, self.service.hour, self.slack)

    def run(self, planted: Findings | None) -> None:
        """Kill as planned, let the campaigns come to their ends, check everything.

        ``planted``: what must have been found at the end; None where that is not to be expected.
        """
        chance = random.Random(self.plan.seed)
        with self._reading() as reader:
            self._keep_busy()
            time.sleep(self.plan.warm_up)
            if self.plan.treated_first:
                self._until_treated()
            for _ in range(self.plan.kills):
                self._look(reader.record())
                self._keep_busy()
                self._live(reader, chance)
                self._look(reader.record())  # nobody writes now: this is what a crash left
                self._start(chance)
                self.say(self._progress())
            if planted is not None:
                self._finish(reader, planted)
            self._look(reader.record())

    def _until_treated(self) -> None:
        end = time.monotonic() + self.plan.patience
        while not noted(self.notes):
            self.service.check()
            if time.monotonic() > end:
                raise AssertionError(f"nobody was treated within {self.plan.patience:.0f} s")
            time.sleep(0.1)

    def witnessed(
        self, planted: Findings | None, ended: Sequence[Kill] | None = None
    ) -> list[Treated]:
        """Check the witness's notes, once its last request has been served.

        ``ended``: the kills after which nobody renews the leases; by default all of them.
        """
        with self._reading() as reader:
            record = reader.record()
        self._look(record)
        treated = noted(self.notes)
        self._note(
            checks.nothing_outlives_its_lease(
                record, treated, self.kills if ended is None else ended, self.bounds
            )
        )
        self._note(checks.every_exposure_is_accounted_for(record, treated))
        self._note(checks.no_device_in_two_experiments(record, treated))
        if planted is not None:
            self._note(checks.all_is_done(record, self.started, planted))
        return treated

    @contextmanager
    def _reading(self) -> Iterator[Reader]:
        reader = Reader(self.service.database)
        try:
            yield reader
        finally:
            reader.close()

    def _look(self, record: Record) -> None:
        self._note(checks.at_any_time(record, self.bounds))
        self._note(checks.nothing_lost(self.last, record))
        self.last = record

    def _note(self, wrong: Iterator[str]) -> None:
        for each in wrong:
            if each not in self.wrong:
                self.say(f"WRONG: {each}")
            self.wrong[each] = None

    def _keep_busy(self) -> None:
        """Start another campaign when the last one is over."""
        if self.started:
            state = self.service.ask("GET", f"/campaigns/{self.started[-1]}")["state"]
            if state == "running":
                return
        new = {**self.campaign, "name": f"number {len(self.started)}"}
        self.started.append(self.service.ask("POST", "/campaigns", new)["id"])

    def _live(self, reader: Reader, chance: random.Random) -> None:
        """Let the service live for a while, or until what is aimed at happens; then kill it."""
        life = chance.uniform(*self.plan.life)
        (aim,) = chance.choices(list(AIMS), list(AIMS.values()))
        delay = chance.choice([0.0, 0.0, 0.002, 0.01, 0.03])
        if chance.random() < 0.4:
            aim = "blind"
            time.sleep(life)
        elif self._await(reader, aim, AIMING * self.plan.life[1]):
            time.sleep(delay)
        else:
            aim = "blind"
        self.kills.append(Kill(self.service.kill(), aim))

    def _await(self, reader: Reader, what: str, seconds: float) -> bool:
        since, end = reader.last_audit(), time.monotonic() + seconds
        while time.monotonic() < end:
            if what in reader.audited_since(since):
                return True
            time.sleep(LOOK_SECONDS)
        return False

    def _start(self, chance: random.Random) -> None:
        """Start the service again; of ten starts one is cut short before it is done."""
        if chance.random() < 0.1:
            self.service.start()
            time.sleep(chance.uniform(0.2, 1.2))
            self.kills.append(Kill(self.service.kill(), "starting"))
        self.service.start()
        self.service.ready()

    def _finish(self, reader: Reader, planted: Findings) -> None:
        """Run campaigns until all that is planted is found, or one ended that decided all it tried.

        A campaign gives up what stayed inconclusive three times: since the service was killed, or
        since the machine was too busy to serve enough requests within a window. What it does not
        find is missing only where it could decide.
        """
        for _ in range(CAMPAIGNS):
            if not self._wait_for_the_end(reader):
                return
            record = reader.record()
            if planted <= checks.found(record) or checks.decided_all(record, self.started[-1]):
                return
            self._keep_busy()

    def _wait_for_the_end(self, reader: Reader) -> bool:
        """Wait for the end of the last campaign; False where it makes no progress any more."""
        audited, progress = 0, time.monotonic()
        while self.service.ask("GET", f"/campaigns/{self.started[-1]}")["state"] == "running":
            self.service.check()
            self._look(reader.record())
            if (newest := reader.last_audit()) != audited:
                audited, progress = newest, time.monotonic()
            elif time.monotonic() > progress + self.plan.patience:
                self.wrong[
                    f"the last campaign is not done, and nothing was audited for "
                    f"{self.plan.patience:.0f} s"
                ] = None
                return False
            time.sleep(0.5)
        return True

    def _progress(self) -> str:
        rows = self.last.experiments.values()
        ended = Counter(row.verdict or row.state for row in rows if row.armed_at is not None)
        counts = ", ".join(f"{count} {name}" for name, count in sorted(ended.items()))
        return (
            f"kill {len(self.kills)} ({self.kills[-1].aim}), campaign {len(self.started)}: "
            f"{counts}; {len(self.last.findings)} findings"
        )
