"""What a process of the service is there for."""

from __future__ import annotations

from typing import Final, Literal, get_args

ProcessRole = Literal["all", "api", "scheduler", "ingest"]
"""``scheduler`` may lead, and then has the engine; ``api`` never does; ``ingest`` reads spans;
``all`` does everything that there is to do."""

ROLES: Final[tuple[ProcessRole, ...]] = get_args(ProcessRole)
