"""The service in one process, or in several with a role each: what ``ldfi serve`` starts."""

from __future__ import annotations

import ipaddress
import logging
import os
import secrets
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import uvicorn
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldfi.cli.extras import need
from ldfi.cli.processes import end_with_parent
from ldfi.cli.signing import signing
from ldfi.cli.terminal import console
from ldfi.errors import InvalidConfig, LdfiError
from ldfi.experiments.api.app import create_app
from ldfi.experiments.api.connections import PatientConnection, room
from ldfi.experiments.api.front_door import front_doors
from ldfi.experiments.api.otlp_grpc import share
from ldfi.experiments.api.worker import worker_app
from ldfi.experiments.cluster.config import Config, called_in, owners_in, variable
from ldfi.experiments.cluster.garbage_collection import short_collections
from ldfi.experiments.cluster.ingest import Ingest, worker_of
from ldfi.experiments.cluster.role import ProcessRole
from ldfi.experiments.cluster.service import Service
from ldfi.experiments.cluster.tokens import Role, Tokens
from ldfi.experiments.domain.traffic.waiting_times import EXPORT
from ldfi.experiments.notify.slack import Slack
from ldfi.experiments.notify.target import Target
from ldfi.experiments.notify.webhook import Webhook
from ldfi.experiments.store.database_errors import explained
from ldfi.experiments.streams.stream import Stream, Topics
from ldfi.experiments.telemetry.logs import set_up
from ldfi.experiments.telemetry.prometheus import Prometheus
from ldfi.experiments.telemetry.tracing import traced, wanted
from ldfi.lineage.machine_code import way

_log = logging.getLogger("ldfi")
_uvicorn: Final = logging.getLogger("uvicorn.error")
_FAILED: Final = "Application startup failed. Exiting."
"""What uvicorn says in the end; we say why."""

NOT_STARTED: Final = 3
"""Exit code where nobody listens in the end, as uvicorn has it."""


def run(config: Config, role: ProcessRole) -> None:
    """Run a process of the service until it is told to end.

    Raises InvalidConfig for a role that lacks something, ModuleNotFoundError without an extra that
    the configuration needs.
    """
    set_up(config.log_format, config.log_level)
    end_with_parent()
    check_role(role, config)
    check_extras(config)
    if config.hasty():
        _log.warning(
            "quiet is %g s: right only where every service exports its spans more often than that "
            "(OpenTelemetry's default is %g s; see docs/howto/collector.md)",
            config.quiet,
            EXPORT,
        )
    service = service_of(config, role)
    if role == "ingest":
        ingest = Ingest(lambda: worker_of(service))
        ingest.start()
        try:
            _answer(worker_app(ingest, service.tokens), config, _told_way)
        finally:
            ingest.stop()
    else:
        app = create_app(service)

        def told(port: int) -> None:
            url = config.public_url or _own_url(config, port)
            greet(app, service.tokens, url, config.host)
            _told_way(port)

        _answer(traced(app) if wanted(os.environ) else app, config, told)


def _told_way(_: int) -> None:
    _log.info("OTLP is decoded by %s", "ldfi-native" if way() == "native" else "Python")


def check_extras(config: Config) -> None:
    """Check for the extras a configuration needs. Raises ModuleNotFoundError for one missing."""
    if config.database_url.get_secret_value().startswith("postgresql"):
        need("postgresql")
    if config.kafka:
        need("kafka")
    if config.signing_key is not None:
        need("signing")
    if isinstance(config.grpc_port, int):
        need("grpc")


def _answer(app: ASGIApp, config: Config, told: Told) -> None:
    """Listen until we are told to end; ``told``: the port, once somebody listens there. Raises what
    the application could not start for."""
    most = room()
    PatientConnection.most = most if config.grpc_port == "off" else most - share(most)
    started = _Started(app)
    asked = uvicorn.Config(
        started,
        http=PatientConnection,
        ws="none",
        log_config=None,  # its lines are ours
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=3,  # long polls and event streams never end by themselves
    )
    server, url = Greeting(asked, told), config.database_url.get_secret_value()
    with short_collections(), suppress(KeyboardInterrupt), explained(url):
        try:
            server.run(front_doors(config.host, config.port))
        except SystemExit:  # so uvicorn ends where the application cannot start
            if started.error is None:
                raise
            raise started.error from None
    if not server.started:
        sys.exit(NOT_STARTED)


class _Started:
    """The application, which keeps the ``error`` of ours, or the database's, that it could not
    start for; uvicorn would log a traceback."""

    def __init__(self, app: ASGIApp) -> None:
        self.error: LdfiError | SQLAlchemyError | None = None
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        failed: list[Message] = []

        async def watched(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed":
                failed.append(message)
            else:
                await send(message)

        try:
            await self._app(scope, receive, watched)
        except (LdfiError, SQLAlchemyError) as error:
            if not failed:
                raise
            self.error = error
            _uvicorn.addFilter(lambda record: record.msg != _FAILED)
            await send({**failed[0], "message": ""})
        except BaseException:
            for each in failed:
                await send(each)
            raise


def check_role(role: ProcessRole, config: Config) -> None:
    """Check that a role has what its processes must share. Raises InvalidConfig."""
    if role == "ingest" and not config.kafka:
        raise InvalidConfig("there are no brokers: set LDFI_KAFKA to HOST:PORT")
    if role not in {"api", "scheduler"}:
        return
    if not config.database_url.get_secret_value().startswith("postgresql"):
        raise InvalidConfig(
            f"role {role} needs PostgreSQL, which processes can share: set LDFI_DATABASE_URL"
        )
    for name in ("tokens", "member_key"):
        if not getattr(config, name):
            raise InvalidConfig(f"role {role} needs {variable(name)}, the same in all processes")


def service_of(config: Config, role: ProcessRole = "all") -> Service:
    """Make of a configuration what a service is made with."""
    prometheus = None
    if config.prometheus_url is not None:
        token = config.prometheus_token
        secret = None if token is None else token.get_secret_value()
        prometheus = Prometheus(config.prometheus_url, secret)
    key = config.member_key
    return Service(
        tokens=Tokens(config.tokens.get_secret_value() or _made_token()),
        database=config.database_url.get_secret_value(),
        lease=config.lease,
        quiet=config.waiting().quiet,
        patience=config.patience,
        limits=config.limits(),
        member_key=key.get_secret_value().encode() if key else secrets.token_bytes(32),
        outcomes=config.outcomes,
        prometheus=prometheus,
        guardrails=config.guardrails,
        targets=tuple(_targets(config)),
        public_url=config.public_url or "",
        trace_url=config.trace_url or "",
        owners=owners_in(config.owners_file),
        called=called_in(config.names_file),
        role=role,
        advertise_url=config.advertise_url or _own_url(config),
        stream=_stream(config, role),
        keys=signing(config),
        topics=Topics(config.kafka_prefix),
        partitions=config.kafka_partitions,
        halt_at=None if config.halt_port is None else (config.host, config.halt_port),
        grpc_at=None if config.grpc_port == "off" else (config.host, config.grpc_port),
    )


def _stream(config: Config, role: ProcessRole) -> Stream | None:
    if not config.kafka:
        return None
    from ldfi.experiments.cluster.stream_from_config import stream_of

    return stream_of(config, "ldfi" if role == "all" else f"ldfi-{role}")


def _own_url(config: Config, port: int | None = None) -> str:
    """Give the address of this process; ``port``: where it listens, if any free one was asked."""
    host = socket.gethostname() if config.host in {"0.0.0.0", "::"} else config.host  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{port or config.port}"


def _targets(config: Config) -> list[Target]:
    targets: list[Target] = []
    if config.webhook_url is not None and config.webhook_secret is not None:
        url, secret = config.webhook_url, config.webhook_secret
        targets.append(Webhook(url.get_secret_value(), secret.get_secret_value()))
    if config.slack_url is not None:
        targets.append(Slack(config.slack_url.get_secret_value()))
    return targets


def _made_token() -> str:
    token = secrets.token_urlsafe(24)
    console(stderr=True).print(
        f"No LDFI_TOKENS given. Admin token for this run: {token}", soft_wrap=True
    )
    return f"admin:{token}"


# What ``ldfi serve`` says once it listens: where the pages are, and how to log in.
#
# A link to log in with is for the eyes of whoever sits at this machine and nobody else's: it is
# shown where standard error is a terminal and the service listens on loopback, never logged, and
# never made in the name of a person whom the configuration names. It is good once, for ten
# minutes.

IN_WHOSE_NAME: Final[tuple[Role, ...]] = ("operator", "admin", "viewer")
"""Roles of a token that a link is made with, the first that there is: what people need to work."""

Told = Callable[[int], None]
"""Is told the port, once somebody listens there."""


class Greeting(uvicorn.Server):
    """A server that says so when it listens: only then is there a port, and only if it was free."""

    def __init__(self, config: uvicorn.Config, told: Told) -> None:
        super().__init__(config)
        self._told = told

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then tell."""
        await super().startup(sockets)
        if self.started and self.servers:
            self._told(int(self.servers[0].sockets[0].getsockname()[1]))


def greet(app: Any, tokens: Tokens, url: str, host: str) -> None:
    """Say where the pages of ``app`` are, and show a link where only its reader can use it."""
    path = _login_path(app, tokens) if sys.stderr.isatty() and is_loopback(host) else None
    if path is None:
        _log.info("pages and API at %s; `ldfi open` logs a browser in", url)
        return
    screen = console(stderr=True)
    screen.print(f"Pages and API at {url}")
    screen.print(f"Log in, once and within ten minutes: {url}{path}", soft_wrap=True)
    screen.print("Later, `ldfi open` makes another link; it asks for LDFI_TOKEN.", soft_wrap=True)


def is_loopback(host: str) -> bool:
    """Tell whether nobody but this machine can connect to an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _login_path(app: Any, tokens: Tokens) -> str | None:
    """Make a link in nobody's name; None where there are no pages, or only people's tokens."""
    make: Callable[[str], str] | None = getattr(app.state, "login_path", None)
    who = next(filter(None, map(tokens.unnamed, IN_WHOSE_NAME)), None)
    return None if make is None or who is None else make(who.id)
