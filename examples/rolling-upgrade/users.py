"""Users with their devices: they ask for items and report what they saw.

Each request is a line of a file: when it ended (Unix seconds), its outcome, and milliseconds.

    python users.py SHOP_URL RATE FILE
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path
from typing import TextIO

import httpx

from ldfi.cli.processes import end_with_parent
from ldfi.demo.devices.report import Metric, Reporter

DEVICES = 5000
PATIENCE = 5.0


async def use(shop: httpx.AsyncClient, reporter: Reporter, seen: TextIO) -> None:
    """Send one request of one device, judge the answer and report it."""
    device, trace = f"device-{random.randrange(DEVICES)}", f"{random.getrandbits(128) or 1:032x}"
    headers = {"x-device-id": device, "traceparent": f"00-{trace}-{trace[:15]}1-01"}
    start = time.monotonic()
    try:
        answer = await shop.get(f"/items/{random.randrange(1000)}", headers=headers)
        outcome = "success" if answer.is_success else "failure"
    except httpx.HTTPError:
        outcome = "failure"
    lasted = 1000 * (time.monotonic() - start)
    seen.write(f"{time.time():.3f} {outcome} {lasted:.1f}\n")
    reporter.add(Metric(device, device, trace, device, outcome, None, lasted))


async def main(url: str, rate: float, seen: TextIO) -> None:
    """Make requests for ever."""
    async with (
        httpx.AsyncClient(base_url=url, timeout=PATIENCE, trust_env=False) as shop,
        httpx.AsyncClient(timeout=2.0, trust_env=False) as control,
    ):
        reporter = Reporter(control, os.environ["LDFI_URL"], os.environ["LDFI_DEVICE_TOKEN"])
        reporting = asyncio.create_task(reporter.run())
        asking: set[asyncio.Task[None]] = set()
        while not reporting.done():
            asking.add(asyncio.create_task(use(shop, reporter, seen)))
            asking = {task for task in asking if not task.done()}
            await asyncio.sleep(1 / rate)


if __name__ == "__main__":
    end_with_parent()
    with Path(sys.argv[3]).open("a", buffering=1) as lines:
        asyncio.run(main(sys.argv[1], float(sys.argv[2]), lines))
