"""From the configuration to the stream, and to the process that runs an ingest worker."""

from __future__ import annotations

import logging
import threading
import time

import uvicorn
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from experiments.config import Config
from experiments.errors import InvalidConfig, StreamError
from experiments.streams.kafka import KafkaStream, Security
from experiments.streams.partition import Patience
from experiments.streams.stream import Stream, Topics
from experiments.streams.worker import Worker

_log = logging.getLogger("ldfi")

STALE = 30.0
"""Seconds without an answer from a broker after which a worker is not ready."""

AGAIN_SECONDS = 2.0


def stream_of(config: Config, client: str = "ldfi") -> Stream:
    """The stream that a configuration names. Raises InvalidConfig where it names none."""
    if not config.kafka:
        raise InvalidConfig("there are no brokers: set LDFI_KAFKA to HOST:PORT")
    password = config.kafka_password
    security = Security(
        config.kafka_protocol,
        config.kafka_mechanism,
        config.kafka_username,
        password.get_secret_value() if password else None,
        config.kafka_ca_file,
        config.kafka_cert_file,
        config.kafka_key_file,
    )
    replicas = config.kafka_replicas or -1
    return KafkaStream(config.kafka, security, client=client, replicas=replicas)


class Ingest:
    """One worker in a thread, made anew when it cannot go on. ``worker``: None while there is
    none, as before the brokers can be reached."""

    def __init__(self, config: Config) -> None:
        self.worker: Worker | None = None
        self._config = config
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ingest")

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is finished, commit, leave the group."""
        self._stopped.set()
        self._thread.join()

    def ready(self) -> bool:
        """Whether the brokers have answered not long ago."""
        return self.worker is not None and time.time() - self.worker.seen.watched_at < STALE

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.worker = self._made()
                self.worker.run(self._stopped.is_set)
            except StreamError as error:
                _log.warning("ingest: %s; trying again", error)
                self._stopped.wait(AGAIN_SECONDS)
            except Exception:  # noqa: BLE001 - one bad message must not end the work for good
                _log.exception("ingest: the worker has failed; another one begins")
                self._stopped.wait(AGAIN_SECONDS)

    def _made(self) -> Worker:
        config = self._config
        topics = Topics(config.kafka_prefix)
        stream = stream_of(config, "ldfi-ingest")
        stream.ensure(topics.partitions(config.kafka_partitions))
        return Worker(
            stream,
            topics,
            Patience(quiet=config.quiet),
            believes_root=config.outcomes == "root",
        )


def serve_ingest(config: Config) -> None:
    """Run an ingest worker until we are told to end, with `/healthz` and `/readyz` beside it."""
    stream_of(config)
    logging.getLogger("kafka").setLevel(logging.WARNING)  # each rebalance is a page otherwise
    ingest = Ingest(config)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/healthz")
    def healthz() -> PlainTextResponse:
        return PlainTextResponse("ok")

    @app.get("/readyz")
    def readyz() -> PlainTextResponse:
        ready = ingest.ready()
        return PlainTextResponse(
            "ready" if ready else "no answer from Kafka", 200 if ready else 503
        )

    ingest.start()
    try:
        uvicorn.run(app, host=config.host, port=config.port, log_level="warning", access_log=False)
    finally:
        ingest.stop()
