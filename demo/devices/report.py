"""Device metrics: batched, sent beside the traffic, given up rather than waited for."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import asdict, dataclass

import httpx

EVERY_SECONDS = 0.1
MOST_KEPT = 5000
MOST_SENT = 1000
PATH = "/api/v1/device-metrics"


@dataclass(frozen=True, slots=True)
class Metric:
    """What one device saw of one request. ``outcome`` is ``success`` or ``failure``."""

    device: str
    member: str
    trace_id: str
    session: str
    outcome: str
    error_code: str | None
    duration_ms: float


class Reporter:
    """Sends metrics to ``url``. While nobody is there, the oldest are dropped and counted."""

    def __init__(self, client: httpx.AsyncClient, url: str | None, token: str | None) -> None:
        self._client = client
        self._url = url and url.rstrip("/") + PATH
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._waiting: deque[Metric] = deque()
        self.sent = 0
        self.dropped = 0

    def add(self, metric: Metric) -> None:
        """Take a metric. Never blocks."""
        self._waiting.append(metric)
        if len(self._waiting) > MOST_KEPT:
            self._waiting.popleft()
            self.dropped += 1

    async def run(self) -> None:
        """Send a batch every 100 ms, until cancelled."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Send one batch, or keep it for later when that fails."""
        if not self._waiting:
            return
        count = min(len(self._waiting), MOST_SENT)
        batch = [self._waiting.popleft() for _ in range(count)]
        if self._url is None:
            self.dropped += count
        elif await self._delivered(self._url, batch):
            self.sent += count
        else:
            self._waiting.extendleft(reversed(batch))

    async def _delivered(self, url: str, batch: list[Metric]) -> bool:
        """Deliver a batch; False when it is worth another try: nobody there, or busy. A refusal
        is final."""
        document = {"metrics": [asdict(metric) for metric in batch]}
        try:
            response = await self._client.post(url, json=document, headers=self._headers)
        except httpx.HTTPError:
            return False
        if response.status_code >= 500 or response.status_code == 429:
            return False
        if not response.is_success:
            self.dropped += len(batch)
            self.sent -= len(batch)
        return True
