"""The devices alone, against a gateway that runs already; prints what they saw."""

from __future__ import annotations

import argparse
import asyncio
import json
from statistics import quantiles

from ldfi.demo.devices.run import add_options, simulate, traffic


def main() -> None:
    """Run for some seconds and print one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m ldfi.demo.devices", description=__doc__)
    parser.add_argument("--gateway", required=True, help="URL of the gateway")
    parser.add_argument("--seconds", type=float, help="how long; default: until interrupted")
    add_options(parser)
    options = parser.parse_args()
    crowd = asyncio.run(simulate(options.gateway, traffic(options), options.seconds))
    seen = {f"{kind} {outcome}": count for (kind, outcome), count in sorted(crowd.seen.items())}
    slow = {
        kind: [round(quantiles(durations, n=100)[place], 1) for place in (49, 98)]
        for kind, durations in crowd.durations.items()
        if len(durations) > 1
    }
    print(json.dumps({"seen": seen, "p50_p99_ms": slow}))  # noqa: T201 - what it was run for


if __name__ == "__main__":
    main()
