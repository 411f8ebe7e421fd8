"""``python -m ldfi.testing.conformance --url URL [--json]``: ask a host, and say what is wrong.

Exit code 0: it conforms. 1: it does not. 4: nobody answers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from ldfi.fit.protocol.errors import FitError
from ldfi.testing.conformance.checks import CHECKS, Check
from ldfi.testing.conformance.edges import EDGE_CHECKS
from ldfi.testing.conformance.host import Host, met

_SHOWN = 5
"""Problems of one check: the first tell enough."""
_AT_ONCE = 4
"""Edges that are asked at once."""


def problems(host: Host) -> dict[str, list[str]]:
    """Ask everything: check → what is wrong. Edges wait a lot, so some are asked at once."""
    found = {_name(check): _wrong(check, host) for check in CHECKS}
    if host.is_edge:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            wrong = list(pool.map(lambda check: _wrong(check, host), EDGE_CHECKS))
        found |= {f"edge: {_name(c)}": each for c, each in zip(EDGE_CHECKS, wrong, strict=True)}
    return found


def _name(check: Check) -> str:
    return check.__name__.replace("_", " ")


def _wrong(check: Check, host: Host) -> list[str]:
    found: list[str] = []
    try:
        found += islice(check(host), _SHOWN)
    except (TimeoutError, FitError) as error:  # nothing happens, or nobody would obey what does
        found.append(f"{type(error).__name__}: {error}")
    return found


def _lines(found: Mapping[str, Sequence[str]]) -> str:
    lines = []
    for check, wrong in found.items():
        lines += [f"{'FAILED' if wrong else 'ok':6} {check}", *(f"       {each}" for each in wrong)]
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Ask the host that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m ldfi.testing.conformance", description=__doc__)
    parser.add_argument("--url", required=True, help="where the host listens")
    parser.add_argument("--json", action="store_true", help="one document instead of lines")
    chosen = parser.parse_args(words)
    try:
        with met(chosen.url.rstrip("/")) as host:
            found = problems(host)
    except OSError as error:
        sys.stderr.write(f"nobody answers at {chosen.url}: {error}\n")
        return 4
    told = json.dumps({"implementation": host.implementation, "problems": found})
    sys.stdout.write(f"{told if chosen.json else _lines(found)}\n")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
