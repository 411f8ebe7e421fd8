"""The mark that leaves a process before a fault takes effect in it.

The proof of a fault stands on the span of the call that it hits, and that leaves with the next
batch, seconds later. Where the fault ends the process, the batch is gone, and so is the proof. So
a span of its own, ``fit.mark``, is ended and flushed first, in both arms alike
(:mod:`ldfi.fit.send_mark`). It hangs below the *caller's* call, beside what this
process will tell of the request: where nothing but the mark came of it, and the caller got no
answer, the fault has killed the process.

    1 treatment 8d21f0 5f1c2a7b refused@api>http:GET db:80/users/*

That is: version, arm, experiment, instance (a random id for each process), fault. What it says
is the same in all languages (``fit/protocol/vectors/marks.json``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

VERSION: Final = "1"

_MARK: Final = re.compile(
    r"1 (treatment|control) ([A-Za-z0-9._~-]{1,64}) ([A-Za-z0-9]{1,32})"
    r" ([A-Za-z0-9:_.=-]{1,80})@([^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,500})"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a mark says. ``instance``: the process that it left."""

    arm: str
    experiment: str
    instance: str
    kind: str
    point: str

    def __str__(self) -> str:
        return f"{VERSION} {self.arm} {self.experiment} {self.instance} {self.fault}"

    @property
    def fault(self) -> str:
        """Return ``kind@point``."""
        return f"{self.kind}@{self.point}"

    @classmethod
    def parse(cls, text: str) -> Mark | None:
        """Read what ``str`` wrote; None for anything else."""
        found = _MARK.fullmatch(text)
        return None if found is None else cls(*found.groups())
