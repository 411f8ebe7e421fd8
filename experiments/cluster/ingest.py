"""An ingest worker in a thread, made anew when it cannot go on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from ldfi.errors import StreamError
from ldfi.experiments.cluster.service import Service
from ldfi.experiments.streams.partition import Patience
from ldfi.experiments.streams.worker import Worker

_log = logging.getLogger("ldfi")

STALE: Final = 30.0
"""Seconds without an answer from a broker, or without getting on, after which a worker is not
ready."""

AGAIN_SECONDS: Final = 2.0


def worker_of(service: Service) -> Worker:
    """Make the worker that a service wants. Raises StreamError."""
    assert service.stream is not None, "only asked for where there is a stream"  # noqa: S101
    service.stream.ensure(service.topics.partitions(service.partitions))
    return Worker(
        service.stream,
        service.topics,
        Patience.of(service.waiting),
        believes_root=service.outcomes == "root",
    )


class Ingest:
    """``make`` makes a worker. ``worker``: None while there is none, as before the brokers can be
    reached."""

    def __init__(self, make: Callable[[], Worker]) -> None:
        self.worker: Worker | None = None
        self._make = make
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ingest")

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish, commit and leave the group."""
        self._stopped.set()
        self._thread.join()

    def ready(self) -> bool:
        """Return whether the brokers have answered not long ago, some partitions are ours, and we
        get on with them."""
        worker = self.worker
        if worker is None or not worker.seen.partitions:
            return False
        return worker.silent() < STALE and worker.stalled() < STALE

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.worker = self._make()
                self.worker.run(self._stopped.is_set)
            except StreamError as error:
                _log.warning("ingest: %s; trying again", error)
                self._again()
            except Exception:  # noqa: BLE001 - whatever it was must not end the work for good
                _log.exception("ingest: the worker has failed; another one begins")
                self._again()

    def _again(self) -> None:
        self.worker = None  # it has left its group
        self._stopped.wait(AGAIN_SECONDS)
