"""The assault on synthetic traffic: quick experiments, so that many crashes fit in a minute."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from ldfi.cli.processes import Processes
from soak.kills import Assault, Plan
from soak.service import Service
from soak.traffic import planted

CAMPAIGN = {
    "kinds": ["error"],
    "max_union": None,
    "treatment": 0.25,
    "control": 0.25,
    "concurrency": 2,
    "window": 5.0,
    "settle": 0.5,
    "follow": 0.0,
    "delta": 0.4,
    "min_samples": 6,
    "min_traffic": 30,
    "members": 40,
    "member_budget": 100_000,
    "rechecks": 1,
    "admission": "all",  # many short experiments, of which some get through between two kills
    "apart": 0.0,
}


def assault(
    database: str,
    folder: Path,
    plan: Plan,
    *,
    paths: tuple[str, ...],
    hour: int = 1_000_000,
    edges: int = 2,
    window: float = 5.0,
    finish: bool = True,
    say: Callable[[str], None] = lambda _line: None,
) -> Assault:
    """Run it. ``finish``: the campaigns shall come to their ends, and find what is planted.

    ``hour``: members in any hour. ``edges``: one alone need not ask for each device, so that a
    service that is slow to answer keeps nobody from being treated. ``window``: seconds in which an
    experiment must have its requests; on a busy machine they take longer.
    """
    service = Service(database, folder, hour)
    attack = Assault(service, folder / "notes", {**CAMPAIGN, "window": window}, plan, say=say)
    wanted = planted(list(paths)) if finish else None
    traffic = [sys.executable, "-m", "soak.traffic", "--url", service.url]
    options = ["--notes", str(attack.notes), "--paths", ",".join(paths), "--edges", f"{edges}"]
    service.start()
    try:
        service.ready()
        with Processes(folder) as processes:
            processes.start("traffic", [*traffic, *options], {})
            attack.run(wanted)
            processes.check()
        complaints = (folder / "traffic.log").read_text()
        assert "Traceback" not in complaints, complaints
    finally:
        service.stop()
    attack.witnessed(wanted)
    return attack
