"""``python -m ldfi.fit.conformance --url URL [--json]``: ask a host, and say what is wrong.

Exit code 0: it conforms. 1: it does not. 4: nobody answers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import islice

from ldfi.fit.conformance.checks import CHECKS
from ldfi.fit.conformance.host import Host, met

_SHOWN = 5
"""Problems of one check: the first tell enough."""


def problems(host: Host) -> dict[str, list[str]]:
    """Ask everything: check → what is wrong."""
    return {check.__name__.replace("_", " "): list(islice(check(host), _SHOWN)) for check in CHECKS}


def _lines(found: Mapping[str, Sequence[str]]) -> str:
    lines = []
    for check, wrong in found.items():
        lines += [f"{'FAILED' if wrong else 'ok':6} {check}", *(f"       {each}" for each in wrong)]
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Ask the host that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m ldfi.fit.conformance", description=__doc__)
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
