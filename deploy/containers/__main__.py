"""``make containers``: build the image, bring compose.yaml up, run a campaign, kill, down and up.

    python -m deploy.containers --json

Exit status 0 where all of that went well, 1 where not, 2 where containers cannot be run here, with
the reason.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time

from deploy.containers import project, standins
from deploy.containers.composed import composed
from deploy.containers.engine import engine
from deploy.containers.trial import Result, trial
from deploy.stack.missing import Missing
from ldfi.cli import exits
from ldfi.cli.terminal import console as screen
from ldfi.errors import ExperimentsError


def main() -> int:
    """Do all of it. The exit status."""
    options = _options()
    console = screen(stderr=options.json)
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    began, result = time.monotonic(), Result()

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True, markup=False)

    try:
        podman = engine()
        services = composed(podman)
        standins.make(podman, say)
    except Missing as error:
        say(f"Containers are not run: {error}")
        return exits.USAGE
    try:
        project.build(podman)
        images = round(time.monotonic() - began, 1)
        say(f"images made, or found, in {images} s")
        trial(services, result, say)
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except (Missing, ExperimentsError) as error:
        result.wrong.append(str(error))
    seconds = round(time.monotonic() - began, 1)
    for wrong in result.wrong:
        say(f"wrong: {wrong}")
    if options.json:
        sys.stdout.write(json.dumps({**result.to_json(), "seconds": seconds}) + "\n")
    return exits.FOUND if result.wrong else exits.FINE


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deploy.containers")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
