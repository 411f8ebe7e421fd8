"""Rounds of a siege: an attack while experiments treat devices, and a halt in the middle of it.

One round for each attack. It begins while an edge stamps requests; then all is halted, by the door
for that, while the attack goes on; when it is over, `resume`, and there must be another experiment.
What must hold is checked against the witness's notes, whose clock nobody sets.

    python -m soak.siege --on sqlite --rounds 3 --json
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx

from soak import checks, halt_checks
from soak.attacks import Attack, silent
from soak.checks import Bounds
from soak.halt_checks import HALT_SECONDS, Round
from soak.record import Reader, Record
from soak.service import LEASE, TOKENS
from soak.sites import Site, ask
from soak.treated import Treated, noted

ARMED_SECONDS: Final = 240.0
"""So soon an edge must stamp again, on a busy machine."""

FRESH: Final = 0.5
"""Seconds ago: somebody is treated just now."""

SHUT_SECONDS: Final = 1.0
"""A halt comes so long after doors were shut: less than a lease, or there is nothing to stop."""

OVER_SECONDS: Final = 4.0
"""A stamped request is served so soon, with the longest hold-up, and stands in the notes then."""


def say(line: str) -> None:
    """Say on standard error how it goes."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@dataclass
class Siege:
    """``notes``: the witness's. ``wrong``: what must not be, in words."""

    them: Site
    notes: Path
    hour: int = 1_000_000
    say: Callable[[str], None] = lambda _line: None
    rounds: list[Round] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    treated: list[Treated] = field(default_factory=list)
    """All that the witness has seen, once everything is over."""
    killed: float = 0.0
    _campaigns: int = 0
    _read: int = 0
    _stamped: float = 0.0

    def run(self, attacks: Sequence[Attack]) -> None:
        """One round for each, then kill it, and check everything."""
        for attack in attacks:
            self._until_stamped()
            self.rounds.append(self._round(attack))
            self.say(f"{attack.name}: answered after {self.rounds[-1].answered:.2f} s")
        self._until_stamped()
        self.killed = self.them.kill()
        time.sleep(LEASE + OVER_SECONDS)
        self.check()

    def check(self) -> None:
        """Hold the record and the notes against each other."""
        self.treated = treated = noted(self.notes)
        record = self._record()
        bounds = Bounds(LEASE, self.hour)
        self.wrong += halt_checks.halts_take_effect(self.rounds, treated)
        self.wrong += halt_checks.halts_had_something_to_stop(self.rounds, treated)
        self.wrong += halt_checks.steps_disarm(self.rounds, treated, LEASE)
        self.wrong += halt_checks.nothing_outlives_a_kill(self.killed, treated, LEASE)
        self.wrong += checks.at_any_time(record, bounds)
        self.wrong += checks.every_exposure_is_accounted_for(record, treated)
        self.wrong += checks.no_device_in_two_experiments(record, treated)
        first = min((each.began for each in self.rounds if each.stepped), default=float("inf"))
        comparable = [each for each in treated if each.stamped < first]
        self.wrong += checks.nothing_outlives_its_lease(record, comparable, [], bounds)

    def _round(self, attack: Attack) -> Round:
        began = time.time()
        with ExitStack() as going_on, silent(self.them):
            for on in attack.on:
                going_on.enter_context(on(self.them))
            stepped = time.time() if attack.steps else 0.0
            time.sleep(attack.before_halt)
            self._until_stamped()
            for shut in attack.shut:
                going_on.enter_context(shut(self.them))
            time.sleep(SHUT_SECONDS)
            halted = time.time()
            status = self._halt()
            answered = time.time() - halted
            time.sleep(HALT_SECONDS + 1.0)
            until = time.time()  # beyond this a halt that could not be put on record may be over
        ask(self.them, "GET", "/status")
        time.sleep(1.5)  # what was owed to the record is on it
        resumed = time.time()
        ask(self.them, "POST", "/resume")
        return Round(attack.name, began, halted, answered, min(until, resumed), status, stepped)

    def _halt(self) -> int:
        """Halt at the door; the status of the answer, 0 where there was none."""
        headers = {"Authorization": f"Bearer {TOKENS['operator']}"}
        why = {"reason": "under siege"}
        try:
            with httpx.Client(trust_env=False) as client:
                url = f"{self.them.door}/api/v1/halt"
                return client.post(url, json=why, headers=headers, timeout=10.0).status_code
        except httpx.HTTPError:
            return 0

    def _until_stamped(self) -> None:
        """Wait until an edge stamps, with a campaign that has something left to try."""
        end, looked = time.monotonic() + ARMED_SECONDS, 0.0
        while time.time() - self._newest() > FRESH:
            if time.monotonic() > end:
                raise AssertionError(f"nobody is treated any more\n{self.them.log[-4000:]}")
            if time.monotonic() - looked > 2.0:
                self._keep_busy()
                looked = time.monotonic()
            time.sleep(0.05)

    def _newest(self) -> float:
        """Return when an edge has last stamped for the treatment, as far as the notes say."""
        if self.notes.exists():
            with self.notes.open() as file:
                file.seek(self._read)
                whole, _, _ = file.read().rpartition("\n")
            self._read += len(whole) + bool(whole)
            stamps = halt_checks.stamps(whole)
            self._stamped = max([self._stamped, *stamps])
        return self._stamped

    def _keep_busy(self) -> None:
        """Start another campaign where none runs. Who is attacked may not answer; then later."""
        try:
            items = ask(self.them, "GET", "/campaigns?state=running", seconds=1.0)["items"]
            if not items:
                new = {**self.them.campaign, "name": f"number {self._campaigns}"}
                ask(self.them, "POST", "/campaigns", new, seconds=1.0)
                self._campaigns += 1
        except AssertionError:
            return

    def _record(self) -> Record:
        reader = Reader(self.them.database)
        try:
            return reader.record()
        finally:
            reader.close()
