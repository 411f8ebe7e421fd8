"""Secrets of commands: from the environment, from files, from standard input; and a warning where
one stands among the arguments, which every user of a machine can read (``ps``)."""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

import typer

from ldfi.error_words import unreadable
from ldfi.errors import Invalid

IN_FILES: Final = ("LDFI_TOKEN", "LDFI_TRACES_TOKEN")
"""Variables of the command line of which a ``..._FILE`` is read."""


def take_in_files(environ: MutableMapping[str, str]) -> None:
    """Set each variable of a secret from the file that its ``..._FILE`` names. Raises Invalid."""
    for name in IN_FILES:
        path = environ.get(f"{name}_FILE")
        if not path:
            continue
        if environ.get(name):
            raise Invalid(f"{name} and {name}_FILE are both set: use one")
        environ[name] = _in_file(f"{name}_FILE", path)


def secret(ctx: typer.Context, param: typer.CallbackParam, value: str | None) -> str | None:
    """Return an option that is a secret: ``-`` is a line of standard input, ``@FILE`` what a file
    holds. What was typed as it is, is taken with a warning. Raises Invalid."""
    source = ctx.get_parameter_source(param.name) if param.name else None
    if value is None or source is None or source.name != "COMMANDLINE":
        return value
    option = param.opts[0]
    if value == "-":
        return _some(sys.stdin.readline().strip(), f"{option} -")
    if value.startswith("@"):
        return _in_file(option, value[1:])
    variable = param.envvar if isinstance(param.envvar, str) else "a variable"
    warn(
        f"{option} shows its secret to every user of this machine (ps): set {variable} or "
        f"{variable}_FILE, or give {option} @FILE or {option} - (standard input)"
    )
    return value


def warn(said: str) -> None:
    """Say on standard error what is done and should not be."""
    typer.echo(f"ldfi: warning: {said}", err=True)


def _in_file(what: str, path: str) -> str:
    try:
        return _some(Path(path).read_text(encoding="utf-8").strip(), f"{what} {path}")
    except (OSError, ValueError) as error:
        raise Invalid(f"{what} cannot be read: {unreadable(error)}") from error


def _some(text: str, where: str) -> str:
    if not text:
        raise Invalid(f"{where} holds nothing: a secret is expected there")
    return text
