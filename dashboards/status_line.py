"""How things stand now, in one sentence: is anything injected, and is all well? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Tone = Literal["calm", "busy", "bad"]

_WORDS: Final = {1: "One", 2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six"}


@dataclass(frozen=True, slots=True)
class StatusLine:
    """``hurt``: of each experiment that may inject something now, the devices that failed so far.
    ``counting``: experiments that inject nothing any more and wait for their last devices.
    ``waiting``: how much waits for somebody."""

    hurt: Sequence[int]
    counting: int
    halted: bool
    breach: bool
    stuck: bool
    """Campaigns go on, and no edge asks for rules."""
    waiting: int

    @property
    def sentence(self) -> str:
        """Say it: first whether anything is injected, then whether all is well."""
        if self.hurt and not self.halted:
            return f"{self._running()} {self._harm()}"
        if self.halted:
            return "Nothing is injected. Everything is halted."
        if self.stuck:
            return "Nothing can be injected: no edge asks for rules."
        if self.breach:
            return "Nothing is injected. A guardrail is breached."
        return f"Nothing is injected. {self._well()}"

    @property
    def tone(self) -> Tone:
        """Say how it is to be coloured."""
        if self.halted or self.breach:
            return "bad"
        if self.hurt:
            return "bad" if any(self.hurt) else "busy"
        return "busy" if self.stuck or self.waiting else "calm"

    def _running(self) -> str:
        count = len(self.hurt)
        said = _WORDS.get(count, f"{count:,}")
        return f"{said} experiment{' is' if count == 1 else 's are'} running."

    def _harm(self) -> str:
        who = "It has" if len(self.hurt) == 1 else "They have"
        hurt = sum(self.hurt)
        if not hurt:
            return f"{who} hurt nobody so far."
        return f"{who} hurt {'one device' if hurt == 1 else f'{hurt:,} devices'} so far."

    def _well(self) -> str:
        if not self.waiting:
            return "All is well."
        things = "One thing waits" if self.waiting == 1 else f"{self.waiting:,} things wait"
        return f"{things} for somebody."
