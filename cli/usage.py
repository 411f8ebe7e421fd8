"""What was typed and cannot be taken, in our words: a sentence for each fault, with the way out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import typer
from typer.core import TyperGroup

from ldfi.error_words import fault, meant

UsageError: Final[type[Exception]] = typer.BadParameter.__mro__[1]
"""The root of what Typer raises for what was typed; it has no name of its own in every version."""


class MissingParameters(typer.BadParameter):
    """Raised for all options and arguments that are missing."""

    def __init__(self, missing: Sequence[Any], ctx: Any) -> None:
        super().__init__("\n".join(map(_missing, missing)), ctx=ctx)


class NoSuchCommand(typer.BadParameter):
    """Raised for a word that is none of a group's commands."""

    def __init__(self, typed: str, group: TyperGroup, ctx: Any) -> None:
        close = meant(typed, group.commands)
        super().__init__(f"{ctx.command_path} has no command {typed!r}{close}", ctx=ctx)


def missing_of(command: Any, ctx: Any, args: list[str]) -> list[Any]:
    """List the options and arguments that a command needs and that are nowhere given."""
    given, _, _ = command.make_parser(ctx).parse_args(args=args)
    return [
        each
        for each in command.get_params(ctx)
        if each.required and each.value_is_missing(each.consume_value(ctx, given)[0])
    ]


def explained(error: Exception) -> str:
    """Put a usage error in our words; the last line says where all options are explained."""
    ctx = getattr(error, "ctx", None)
    said = _said(error, ctx)
    if not said or ctx is None:
        return said
    return f"{said}\n`{ctx.command_path} --help` explains what it takes."


def likely(typed: str, group: TyperGroup) -> bool:
    """Tell whether a word is one of a group's commands, misspelt."""
    return bool(meant(typed, group.commands))


def _said(error: Any, ctx: Any) -> str:
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""  # its help is printed by then
    message = str(error.message)
    option = getattr(error, "option_name", None)
    if type(error).__name__ == "NoSuchOption":
        known = [name for each in ctx.command.get_params(ctx) for name in _names(each)]
        return f"there is no option {option}{meant(str(option), known)}"
    if option is not None:
        if "does not take a value" in message:
            return f"{option} takes no value: leave out what follows its ="
        param = next((p for p in ctx.command.get_params(ctx) if option in _names(p)), None)
        return f"{option} needs a value" + (f": {_about(param)}" if param is not None else "")
    if "unexpected extra argument" in message:
        words = message.partition("(")[2].partition("(")[2] or message.rpartition("(")[2]
        return f"too many arguments: {words.rstrip(')')!r} is not expected"
    if message == "Missing command.":
        return f"{ctx.command_path} needs a command: {', '.join(ctx.command.commands)}"
    if isinstance(error, MissingParameters | NoSuchCommand):
        return message
    return "\n".join(_values(error))


def _values(error: Any) -> Iterator[str]:
    """Say of each value what is wrong with it."""
    hint, param = error.param_hint if hasattr(error, "param_hint") else None, error.param
    name = hint if isinstance(hint, str) else _name(param) if param is not None else ""
    cause = error.__cause__
    about = f" ({_about(param)})" if param is not None and _about(param) else ""
    items = cause.errors() if hasattr(cause, "errors") else []
    choices = _choices(param)
    for item in items:
        if choices and isinstance(item["input"], str):
            listed, close = ", ".join(choices), meant(item["input"], choices)
            yield f"{name}: must be one of {listed}, got {item['input']!r}{close}"
        elif item["type"] == "value_error":
            yield f"{name}: {_range(param)}got {item['input']!r}{about}"
        else:
            yield f"{name}: {fault(item)}{about}"
    if not items:
        yield f"{name}: {error.message}" if name else str(error.message)


def _range(param: Any) -> str:
    """Say within which bounds a number has to be, or that the value cannot be used."""
    info = getattr(getattr(param, "type_descriptor", None), "parameter_info", None)
    low, high = getattr(info, "min", None), getattr(info, "max", None)
    if low is None and high is None:
        return "cannot be used, "
    if high is None:
        return f"must be at least {low}, "
    return f"must be at most {high}, " if low is None else f"must be from {low} to {high}, "


def _choices(param: Any) -> list[str]:
    found: Iterable[Any] = getattr(getattr(param, "type_descriptor", None), "choices", None) or ()
    return [str(getattr(each, "value", each)) for each in found]


def _missing(param: Any) -> str:
    name = _name(param)
    variable = param.envvar if isinstance(param.envvar, str) else None
    if param.param_type_name == "argument":
        return f"{name} is missing: {_about(param) or 'give one'}"
    way = f"set {variable}, or give {name}" if variable else f"give {name} {_metavar(param)}"
    return f"{name} is missing: {way} ({_about(param)})" if _about(param) else f"{name}: {way}"


def _metavar(param: Any) -> str:
    return str(param.metavar or param.name.replace("_", "-").upper())


def _name(param: Any) -> str:
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper())
    return str(max(param.opts, key=len))


def _names(param: Any) -> list[str]:
    if param.param_type_name == "argument":
        return []
    return [*param.opts, *param.secondary_opts]


def _about(param: Any) -> str:
    text = " ".join(str(getattr(param, "help", None) or "").split()).rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
