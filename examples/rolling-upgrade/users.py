"""Users with their devices: they ask for items and report what they saw. Counts go to a file.

python users.py SHOP_URL RATE COUNTS_FILE
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import httpx

from ldfi.demo.devices.report import Metric, Reporter
from ldfi.experiments.cli.processes import end_with_parent

DEVICES = 5000
PATIENCE = 5.0


async def use(shop: httpx.AsyncClient, reporter: Reporter, seen: Counter[str]) -> None:
    """Send one request of one device, judge the answer and report it."""
    device, trace = f"device-{random.randrange(DEVICES)}", f"{random.getrandbits(128) or 1:032x}"
    headers = {"x-device-id": device, "traceparent": f"00-{trace}-{trace[:15]}1-01"}
    start = time.monotonic()
    try:
        answer = await shop.get(f"/items/{random.randrange(1000)}", headers=headers)
        outcome = "success" if answer.is_success else "failure"
    except httpx.HTTPError:
        outcome = "failure"
    seen[outcome] += 1
    lasted = 1000 * (time.monotonic() - start)
    reporter.add(Metric(device, device, trace, device, outcome, None, lasted))


async def main(url: str, rate: float, counts: Path) -> None:
    """Make requests for ever."""
    seen: Counter[str] = Counter()
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
            put(counts, json.dumps(seen))
            await asyncio.sleep(1 / rate)


def put(file: Path, text: str) -> None:
    """Replace a file at once, so that nobody reads half of it."""
    half = file.with_suffix(".half")
    half.write_text(text)
    half.replace(file)


if __name__ == "__main__":
    end_with_parent()
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])))
