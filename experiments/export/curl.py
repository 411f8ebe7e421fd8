"""curl: a shell script that sends the request once without the faults and once with them."""

from __future__ import annotations

import shlex
from typing import Final

from ldfi.experiments.export.chaostoolkit import DEVICE, TARGET, command
from ldfi.experiments.export.program import Program
from ldfi.fit.edge import DEVICE_HEADER

WARNINGS: Final = (
    "NO PROOF: curl shows two answers, not whether a fault fired; `ldfi reproduce` does.",
)


def script(this: Program, target: str | None) -> str:
    """Write the script, for any POSIX shell."""
    where = f': "${{{TARGET}:={target}}}"' if target else f': "${{{TARGET}:?where to send it}}"'
    given = " ".join(
        f"-H {shlex.quote(f'{name}: {value}')}" for name, value in this.headers.items()
    )
    ask = (
        f"curl -sS -i -X {this.method} --max-time {this.timeout:g} {given} "
        f'-H "{DEVICE_HEADER}: ${DEVICE}"'
    )
    url = f'"${TARGET}"{shlex.quote(this.path)}'
    return f"""#!/bin/sh
# {this.scenario.title}
# Scenario {this.scenario.id} of ldfi. FIT_KEYS holds the key that the services know.
set -eu
{where}
: "${{{DEVICE}:?your own device id}}"
CONTEXT="$({command(this)})"

echo "== without the faults"
{ask} {url}
echo
echo "== with the faults"
{ask} -H "baggage: $CONTEXT" {url}
"""
