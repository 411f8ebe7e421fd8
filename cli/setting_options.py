"""An option of its own for a campaign's setting, made of the setting's declaration.

Typer makes options of a command's signature, so the signature is what is made here. An option that
is not given is None: the service, or the campaign that is taken up again, has the default.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any, Final, Literal, get_origin

import typer

from ldfi.experiments.domain.declared_settings import Setting
from ldfi.experiments.domain.settings import SETTINGS

PLACE: Final = "asked"
"""The parameter in whose place the options stand; it gets those given, by name."""

Command = Callable[..., None]


def with_settings(panels: Mapping[str, Sequence[str]]) -> Callable[[Command], Command]:
    """Give a command options for these settings, by the panel of ``--help`` they are shown in."""
    options = [_option(SETTINGS[name], panel) for panel, names in panels.items() for name in names]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_options(**given: Any) -> None:
            values = {option.name: _words(given.pop(option.name)) for option in options}
            asked = {name: value for name, value in values.items() if value not in (None, [])}
            command(**given, **{PLACE: asked})

        own = inspect.signature(command, eval_str=True).parameters.values()
        taken = [each for p in own for each in (options if p.name == PLACE else [p])]
        with_options.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        with_options.__annotations__ = {each.name: each.annotation for each in taken}
        return with_options

    return decorate


def _words(value: Any) -> Any:
    """Take lists apart that were given with commas."""
    if not isinstance(value, list):
        return value
    return [word.strip() for each in value for word in str(each).split(",")]


def _option(setting: Setting, panel: str) -> inspect.Parameter:
    kind: Any = str if get_origin(setting.one) is Literal else setting.one
    names = [f"--{setting.name.removesuffix('s')}"] if setting.many else []
    told = typer.Option(*names, help=_help(setting), rich_help_panel=panel)
    typed: Any = Annotated[(list[kind] if setting.many else kind) | None, told]
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(setting.name, only, default=None, annotation=typed)


def _help(setting: Setting) -> str:
    about, (*others, last) = setting.about, setting.choices or ("",)
    unit = f", in {about.unit}" if about.unit else ""
    choices = f": {', '.join(others)} or {last}" if last else ""
    if about.reads is not None and last:
        choices = f": {', '.join((*others, last))}, or others (docs/injection-points.md)"
    return f"{about.meaning}{unit}{choices}{'; repeatable' if setting.many else ''}."
