"""``ldfi serve``: the service in one process, or in several with a role each."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ldfi.cli.init import as_file, made, write
from ldfi.cli.secret import warn
from ldfi.error_words import unreadable
from ldfi.errors import Invalid
from ldfi.experiments.cluster.role import ProcessRole
from ldfi.experiments.queries.process_environment import as_shell, blocks

if TYPE_CHECKING:
    from ldfi.experiments.cluster.config import Config


_PASSWORD: Final = re.compile(r"://[^/@]*:[^/@]+@|[?&]password=")


def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on.", min=0, max=65535, show_default="8600")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="SQLite file or URL of the state.", show_default="sqlite:///ldfi.sqlite3"
        ),
    ] = None,
    role: Annotated[
        ProcessRole,
        typer.Option(
            help="`scheduler`: leads, or stands by until it can. `api`: answers, and passes on "
            "to the leader what only that one can do. `ingest`: reads spans from Kafka. "
            "There may be any number of each."
        ),
    ] = "all",
    dev: Annotated[
        bool,
        typer.Option(
            "--dev",
            help="On your own machine: keys and tokens from `ldfi.env`, made where there is none; "
            "the root span says how a request went; prints what your services must be told.",
        ),
    ] = False,
) -> None:
    """Run the service. It needs no other server. Everything else is set as `ldfi config` says."""
    from ldfi.cli.serving import run
    from ldfi.experiments.cluster.config import Config

    given: dict[str, Any] = {"host": host, "port": port, "database_url": _url(database)}
    if not dev:
        config = Config.load(**given)
        config.refuse_examples()
        run(config, role)
        return

    take_in(lambda: _here(_lasting(Config.load(**given))))
    config = Config.load(**given)
    for name in config.examples():
        warn(f"LDFI_{name.upper()} has an example that is published: nobody else may reach this")
    typer.echo(told(config.public_url or _here(_lasting(config))))
    run(config, role)


def _lasting(config: Config) -> int:
    """Return the port that services are told. Raises Invalid where it is another each time."""
    if not config.port:
        raise Invalid("--dev tells your services a port: port 0 would be another each time")
    return config.port


def _here(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _url(database: str | None) -> str | None:
    if database and "://" in database and _PASSWORD.search(database):
        warn(
            "--database shows its password to every user of this machine (ps): set "
            "LDFI_DATABASE_URL or LDFI_DATABASE_URL_FILE"
        )
    return f"sqlite:///{Path(database)}" if database and "://" not in database else database


# ``ldfi serve --dev``: what a service needs on a machine of one's own, from one command.

FILE: Final = Path("ldfi.env")
ALONE: Final = {"LDFI_OUTCOMES": "root", "LDFI_EXPORT_INTERVAL": "1"}
"""What holds where nobody says else: on a machine of one's own no devices report, and services
export as often as :func:`told` tells them."""
EXPORT: Final = {"OTEL_BSP_SCHEDULE_DELAY": "500"}
"""Milliseconds; by default it is five seconds, and each step of an experiment waits for spans."""


def take_in(url: Callable[[], str]) -> None:
    """Take keys and tokens from ``ldfi.env``, which is made where there is none for a service at
    ``url``.

    What the environment says already stays. Raises Invalid where the file cannot be read or
    written, and what ``url`` raises.
    """
    if not FILE.exists():
        write(FILE, as_file(made(url())), force=False)
    for name, value in {**_read(FILE), **ALONE}.items():
        os.environ.setdefault(name, value)


def told(url: str) -> str:
    """Say what services and edges must be told, which reach the service at ``url``."""
    often = {kind: variables | EXPORT for kind, variables in blocks(url).items()}
    return f"# {FILE} holds your keys and tokens. Keep it out of version control.\n\n" + as_shell(
        FILE.resolve(), often, serving=False
    )


def _read(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read: {unreadable(error)}") from error
    pairs = [line.partition("=") for line in lines if line.strip() and not line.startswith("#")]
    if strange := [name for name, equals, _ in pairs if not equals]:
        raise Invalid(f"{file}: {strange[0]!r} is no NAME=VALUE; `ldfi init --force` makes it anew")
    return {name: value for name, _, value in pairs}
