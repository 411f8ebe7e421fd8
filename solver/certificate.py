"""The certificate: nothing within the bounds is left untested, with the evidence for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Certificate:
    """What an exploration knows at one moment. Faults are written by name, sets sorted."""

    max_size: int | None
    faults: tuple[str, ...]
    findings: tuple[tuple[str, ...], ...]
    open: tuple[tuple[str, ...], ...]
    experiments: int

    def to_json(self) -> str:
        """One JSON document."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read what :meth:`to_json` wrote."""
        data: Mapping[str, Any] = json.loads(text)
        return cls(
            max_size=data["max_size"],
            faults=tuple(data["faults"]),
            findings=tuple(tuple(each) for each in data["findings"]),
            open=tuple(tuple(each) for each in data["open"]),
            experiments=data["experiments"],
        )
