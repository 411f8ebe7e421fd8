"""``ldfi serve --dev``: what a service needs on a machine of one's own, from one command."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ldfi.cli.init import as_file, as_shell, blocks, made, write
from ldfi.error_words import unreadable
from ldfi.errors import Invalid

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
