"""curl: a shell script that sends the request once without the faults and once with them."""

from __future__ import annotations

from typing import Final

from ldfi.fit.device import DEVICE_HEADER
from ldfi.scenarios.export.chaostoolkit import DEVICE, TARGET, command
from ldfi.scenarios.export.program import Program
from ldfi.scenarios.export.shell import comment, default, wanted, word

WARNINGS: Final = (
    "NO PROOF: curl shows two answers, not whether a fault fired; `ldfi reproduce` does.",
)


def script(this: Program, target: str | None) -> str:
    """Write the script, for any POSIX shell."""
    where = default(TARGET, target) if target else wanted(TARGET, "where to send it")
    given = " ".join(f"-H {word(f'{name}: {value}')}" for name, value in this.headers.items())
    ask = (
        f"curl -sS -i -g --path-as-is -X {word(this.method)} --max-time {this.timeout:g} {given} "
        f'-H "{DEVICE_HEADER}: ${DEVICE}"'
    )
    url = f'"${TARGET}"{word(this.path)}'
    return f"""#!/bin/sh
{comment(this.scenario.title)}
{comment(f"Scenario {this.scenario.id} of ldfi. FIT_KEYS holds the key that the services know.")}
set -eu
{where}
{wanted(DEVICE, "your own device id")}
CONTEXT="$({command(this)})"

echo "== without the faults"
{ask} {url}
echo
echo "== with the faults"
{ask} -H "baggage: $CONTEXT" {url}
"""
