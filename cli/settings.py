"""``--file`` and ``--set``: what is asked for as a document, checked before it is sent.

Three sources, the later wins: a file (YAML, TOML or JSON), options of their own, ``--set``. The
service's own models check the result, so that a fault in it is found before anything begins.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldfi.error_words import faults, unreadable
from ldfi.errors import Invalid
from ldfi.experiments.domain.settings import SETTINGS

if TYPE_CHECKING:
    from pydantic import BaseModel

Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; repeatable."),
]


def pairs(given: Sequence[str] | None) -> dict[str, Any]:
    """Read ``NAME=VALUE`` pairs; a value is JSON where it can be, else text."""
    values = {}
    for pair in given or ():
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise typer.BadParameter(
                f"must be NAME=VALUE, as in max_size=2, got {pair!r}", param_hint="--set"
            )
        try:
            values[name] = json.loads(text)
        except (ValueError, RecursionError):
            values[name] = text
    return values


def read(file: Path | None) -> dict[str, Any]:
    """Read a document by its file's ending; nothing without a file."""
    if file is None:
        return {}
    import yaml

    from ldfi.scenarios.document import load

    try:
        text = file.read_text(encoding="utf-8")
        document = tomllib.loads(text) if file.suffix == ".toml" else load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        why = unreadable(error)
        raise typer.BadParameter(f"{file} cannot be read: {why}", param_hint="--file") from error
    if not isinstance(document, dict):
        raise typer.BadParameter(
            f"{file} must hold settings by name, as in max_size: 2", param_hint="--file"
        )
    return document


def checked(model: type[BaseModel], document: Mapping[str, Any]) -> dict[str, Any]:
    """Check the document; return it as the service takes it, without what was not set: settings
    that people say beside the rest go into ``settings``.

    Raises Invalid, with every fault in it.
    """
    from pydantic import ValidationError

    try:
        found = model.model_validate(document)
        asked = found.model_dump(mode="json", exclude_unset=True, by_alias=True)
        beside = {name: asked.pop(name) for name in SETTINGS if name in asked}
        within = {**(asked.pop("settings", None) or {}), **beside}
        return asked | ({"settings": within} if within else {})
    except ValidationError as error:
        told = "".join(f"\n  {each}" for each in faults(error, model.model_fields))
        raise Invalid(f"these settings cannot be used:{told}") from error
