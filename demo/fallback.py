"""A step one can do without: its result if it comes in time, else a default."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from ldfi.demo import limits

Result = TypeVar("Result")


async def within(step: Awaitable[Result], default: Result, seconds: float = limits.LOCAL) -> Result:
    """Wait for ``step``; give ``default`` when it fails in any way or takes too long."""
    try:
        async with asyncio.timeout(seconds):
            return await step
    except Exception:  # noqa: BLE001 - whatever went wrong, the request goes on without it
        return default
