"""Notes of the witness: every request that was treated, written outside of the service."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO


@dataclass(frozen=True, slots=True)
class Treated:
    """A device's request that an edge stamped for the treatment of an experiment.

    ``stamped``: when the edge did, Unix seconds. ``fired``: when the last of its faults fired;
    None where none did, since the context had expired on its way or the request took another path.
    """

    experiment: str
    device: str
    stamped: float
    fired: float | None


_writing = threading.Lock()


def note(notes: TextIO, seen: Iterable[Treated]) -> None:
    """Add lines to the notes, and have them written before anything else is done."""
    lines = "".join(json.dumps(asdict(each)) + "\n" for each in seen)
    with _writing:
        notes.write(lines)
        notes.flush()


def noted(path: Path) -> list[Treated]:
    """Return all that was noted; a last line that is being written does not count yet."""
    if not path.exists():
        return []
    whole, _, _ = path.read_text().rpartition("\n")
    return [Treated(**json.loads(line)) for line in whole.splitlines()]
