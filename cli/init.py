"""``ldfi init``: keys and tokens of a new installation, and what each process must be told.

The file holds the secrets and nothing else does: what is printed names them by their variables.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ldfi.cli.control import HERE, AsJson
from ldfi.error_words import system
from ldfi.errors import Conflict, Invalid
from ldfi.experiments.queries.process_environment import as_shell, blocks

ROLES: Final = ("admin", "operator", "viewer", "edge", "ingest", "devices", "metrics")
COMPOSED: Final = "http://ldfi:8600"
"""Where containers reach the service that compose, or Kubernetes, calls `ldfi`."""

_TITLES: Final = {
    "ldfi": "the service",
    "services": "each service under test",
    "edge": "the edge, the first service that a request reaches",
}


NAMES: Final = "ldfi-names.toml"
NAMES_TEXT: Final = """\
# How people call kinds of request, and what they say when one is lost. The service reads it when it
# starts, if LDFI_NAMES_FILE says where it is. `ldfi classes` lists the kinds of request there are.
# Without a line here they go by their own names: GET /play/* is lost when license does not answer.
#
# ["GET /play/*"]
# name = "Play"
# lost = "nobody can press play"
"""


class Written(StrEnum):
    """In whose words the blocks are written."""

    SHELL = "shell"
    COMPOSE = "compose"
    KUBERNETES = "kubernetes"


def init(
    file: Annotated[Path, typer.Option(help="Where keys and tokens go.")] = Path("ldfi.env"),
    form: Annotated[
        Written, typer.Option("--for", help="Whose words: a shell's, compose's or Kubernetes'.")
    ] = Written.SHELL,
    url: Annotated[str, typer.Option(help="Where people reach the service.")] = HERE,
    services_url: Annotated[
        str | None,
        typer.Option(help="Where services reach it.", show_default=f"--url; elsewhere {COMPOSED}"),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the file: what it held opens nothing then.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make keys and tokens for every role, and print what each process must be told.

    They go into a file that only you can read. Nothing that is printed is a secret. A file in which
    people's names for requests go is made beside it, unless there is one.
    """
    values = made(url.rstrip("/"))
    write(file, as_file(values), force=force)
    names = name_requests(file.with_name(NAMES))
    reached = services_url or (url if form is Written.SHELL else COMPOSED)
    told = blocks(reached.rstrip("/"))
    if as_json:
        document: dict[str, Any] = {
            "file": str(file),
            "names": str(names),
            "variables": list(values),
            "told": told,
        }
        typer.echo(json.dumps(document))
        return
    typer.echo(f"# {file} holds your keys and tokens. Keep it out of version control.")
    typer.echo(f"# {names} can say how people call requests: LDFI_NAMES_FILE={names}\n")
    forms = {Written.COMPOSE: as_compose, Written.KUBERNETES: as_kubernetes}
    typer.echo(forms.get(form, as_shell)(file, told))


def made(url: str) -> dict[str, str]:
    """Make every secret anew; by variable. ``url``: where people reach the service."""
    tokens = {role: secrets.token_hex(24) for role in ROLES}
    return {
        "LDFI_TOKENS": ",".join(f"{role}:{token}" for role, token in tokens.items()),
        "LDFI_MEMBER_KEY": secrets.token_hex(24),
        "FIT_KEYS": f"k1:{secrets.token_hex(32)}",
        "LDFI_URL": url,
        "LDFI_TOKEN": tokens["operator"],
        **{f"{role.upper()}_TOKEN": token for role, token in tokens.items()},
    }


def name_requests(file: Path) -> Path:
    """Make the file in which people say how they call requests, where there is none; empty but
    for how that is done."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(NAMES_TEXT)
    except FileExistsError:
        pass
    except OSError as error:
        raise Invalid(f"{file} cannot be written: {system(error)}") from error
    return file


def as_file(values: Mapping[str, str]) -> str:
    """Write values as shells, compose and systemd read them."""
    foolish = [name for name, value in values.items() if shlex.quote(value) != value]
    if foolish:
        raise Invalid(f"{', '.join(foolish)}: no shell would read that as it is")
    return "".join(f"{name}={value}\n" for name, value in values.items())


def as_kubernetes(file: Path, told: Mapping[str, Mapping[str, str]]) -> str:
    """Write the blocks for containers of pods, which take the secrets from a Secret of ours."""
    lines = [f"# kubectl create secret generic ldfi --from-env-file {shlex.quote(str(file))}"]
    for kind, title in _TITLES.items():
        lines += ["", f"# {title}", "env:"]
        lines += ["- {name: LDFI_HOST, value: 0.0.0.0}"] if kind == "ldfi" else []
        for name, value in told[kind].items():
            lines += _variable(name, value)
    return "\n".join(lines)


def _variable(name: str, value: str) -> list[str]:
    """Write one variable; one that holds a secret within is put together by the kubelet."""
    (secret,) = re.findall(r"\$\{(\w+)\}", value) or [""]
    if not secret:
        return [f"- {{name: {name}, value: {json.dumps(value)}}}"]
    whole = value == f"${{{secret}}}"
    key = f"valueFrom: {{secretKeyRef: {{name: ldfi, key: {secret}}}}}"
    taken = f"- {{name: {name if whole else secret}, {key}}}"
    within = json.dumps(value.replace(f"${{{secret}}}", f"$({secret})"))
    return [taken] if whole else [taken, f"- {{name: {name}, value: {within}}}"]


def as_compose(file: Path, told: Mapping[str, Mapping[str, str]]) -> str:
    """Write the blocks for a compose file, which takes the secrets from ours."""
    lines = [f"# docker compose --env-file {shlex.quote(str(file))} up"]
    for kind, title in _TITLES.items():
        lines += ["", f"# {title}", "environment:"]
        lines += ["  LDFI_HOST: 0.0.0.0"] if kind == "ldfi" else []
        lines += [f"  {name}: {json.dumps(value)}" for name, value in told[kind].items()]
    return "\n".join(lines)


def write(file: Path, text: str, *, force: bool) -> None:
    """Write a file that only its owner can read.

    Raises Conflict where there is one, unless ``force``; then what was there is replaced, and not
    what it may point to. Raises Invalid where none can be written.
    """
    beside = file.with_name(f".{file.name}-{secrets.token_hex(4)}") if force else file
    try:
        number = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as opened:
            opened.write(text)
        beside.replace(file)
    except FileExistsError:
        raise Conflict(
            f"{file} is there already; with --force it is overwritten, and what it holds opens "
            "nothing any more"
        ) from None
    except OSError as error:
        raise Invalid(f"{file} cannot be written: {system(error)}") from error
