"""The kinds of fault: how a call fails.

They stand above the rooms, so that whoever only names them loads no room for that.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

FaultKind = Literal["error", "delay"]
KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)
