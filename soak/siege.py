"""``make soak-siege``: each attack by itself and all at once, many rounds, on both kinds of site.

    python -m soak.siege --on sqlite --rounds 3 --json

Exit status 1 where anything was found wrong, 2 where something is missing. Needs root, for a disk
of its own, and libfaketime. Progress goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from deploy.stack.missing import Missing
from ldfi.cli import exits
from soak.attacks import EVERY, Attack
from soak.halt_checks import latest_stamp
from soak.rounds import Siege, say
from soak.sites import Site, on_sqlite
from soak.stack_site import on_stack

PATHS: Final = ("/boot", "/play", "/store", "/top")
SITES: Final[dict[str, Callable[[Path, Sequence[str]], AbstractContextManager[Site]]]] = {
    "sqlite": on_sqlite,
    "stack": on_stack,
}


@dataclass(frozen=True, slots=True)
class Row:
    """What the rounds of one attack came to. ``answered``: the longest that a halt's answer took,
    ``stamped``: the latest that an edge stamped after one, in seconds. ``on_record``: halts that
    the door said were on record."""

    site: str
    attack: str
    rounds: int
    answered: float
    stamped: float
    on_record: int


def main() -> int:
    """Besiege the sites asked for."""
    options = _options()
    attacks = [each for each in EVERY if not options.attack or each.name in options.attack]
    rows, wrong = list[Row](), list[str]()
    try:
        for site in options.on or SITES:
            found = _besieged(site, attacks * options.rounds)
            rows += _rows(site, attacks, found)
            wrong += found.wrong
    except Missing as error:
        say(str(error))
        return exits.USAGE
    for line in [*map(str, rows), *(f"WRONG: {each}" for each in wrong)]:
        say(line)
    if options.json:
        document = {"rows": [asdict(row) for row in rows], "wrong": wrong}
        sys.stdout.write(json.dumps(document) + "\n")
    return int(bool(wrong))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m soak.siege")
    parser.add_argument("--on", action="append", choices=SITES, help="default: both")
    parser.add_argument("--attack", action="append", choices=[each.name for each in EVERY])
    parser.add_argument("--rounds", type=int, default=3, help="of each attack; default: 3")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args()


def _besieged(site: str, attacks: Sequence[Attack]) -> Siege:
    folder = Path(tempfile.mkdtemp(prefix=f"ldfi-siege-{site}-"))
    began = time.monotonic()
    try:
        with SITES[site](folder, PATHS) as them:
            siege = Siege(them, folder / "notes", say=say)
            siege.run(sorted(attacks, key=EVERY.index))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(f"{site}: {len(siege.rounds)} rounds in {time.monotonic() - began:.0f} s")
    return siege


def _rows(site: str, attacks: Sequence[Attack], siege: Siege) -> list[Row]:
    rows = []
    for attack in attacks:
        rounds = [each for each in siege.rounds if each.attack == attack.name]
        rows.append(
            Row(
                site,
                attack.name,
                len(rounds),
                round(max(each.answered for each in rounds), 2),
                round(max(latest_stamp(each, siege.treated) for each in rounds), 2),
                sum(each.status == 200 for each in rounds),
            )
        )
    return rows


if __name__ == "__main__":
    sys.exit(main())
