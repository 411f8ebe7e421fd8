"""What libraries and the system complain of, in our words: ``field: what is wrong, got VALUE``.

Their sentences speak of their own types, change with their versions, and name no way out. Needs no
more than the standard library: a plain install has no pydantic and no httpx.
"""

from __future__ import annotations

import errno
import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, Protocol

SHOWN: Final = 60
"""Characters of a value that a message shows at most."""

_FIXED: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "string_type": "must be text",
    "string_unicode": "must be text in UTF-8",
    "string_pattern_mismatch": "has a form or characters that it may not have",
    "finite_number": "must be a finite number",
    "json_invalid": "must be JSON",
    "json_type": "must be JSON",
    "none_required": "must be left out",
    "url_parsing": "must be a URL such as http://HOST:PORT",
    "url_type": "must be a URL such as http://HOST:PORT",
    "url_syntax_violation": "must be a URL such as http://HOST:PORT",
    "path_type": "must be a path",
    "path_not_file": "must be a file that exists",
    "path_not_directory": "must be a folder that exists",
}
_BEGINNINGS: Final[Sequence[tuple[str, str]]] = (
    ("int_", "must be a whole number"),
    ("float_", "must be a number"),
    ("decimal_", "must be a number"),
    ("bool_", "must be true or false"),
    ("bytes_", "must be text"),
    ("url_", "must be a URL such as http://HOST:PORT"),
    ("date", "must be a date and time such as 2026-11-23T02:10Z"),
    ("time", "must be a time such as 02:10"),
    *((f"{kind}_", "must be a list") for kind in ("list", "tuple", "set", "frozen_set")),
    *((f"{kind}_", "must hold fields by name") for kind in ("dict", "mapping", "model")),
    ("dataclass_", "must hold fields by name"),
    ("union_", "has none of the forms that it may have"),
)
_BOUNDS: Final[Mapping[str, str]] = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "string_too_long": "must have {max_length} characters at most",
    "too_long": "must have {max_length} entries at most",
}
_SYSTEM: Final[Mapping[int, str]] = {
    errno.ENOENT: "there is no such file or folder",
    errno.EACCES: "you may not read or write it",
    errno.EPERM: "you may not do that",
    errno.EISDIR: "it is a folder, and a file is needed",
    errno.ENOTDIR: "a folder of its path is a file",
    errno.EEXIST: "it is there already",
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "the disk is read-only",
    errno.EADDRINUSE: "another process listens there",
    errno.EADDRNOTAVAIL: "that address is not of this machine",
    errno.ECONNREFUSED: "nobody listens there",
    errno.ENOEXEC: "it is no program",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "it is a link that leads to itself",
}


class ValidationFailed(Protocol):
    """What pydantic and FastAPI raise."""

    def errors(self) -> Sequence[Any]:
        """List the faults."""
        ...


def place(loc: Iterable[object], between: str = "/") -> str:
    """Name the field that a fault is in."""
    return between.join(map(str, loc))


def faults(
    error: ValidationFailed, known: Iterable[str] = (), shows: Callable[[Any], bool] | None = None
) -> Iterator[str]:
    """Yield ``field: what is wrong, got VALUE`` for each fault of a validation.

    ``known``: names there are, of which one is suggested for an unknown one. ``shows``: whether the
    value of a fault may be shown; all are, if not given.
    """
    for item in items(error):
        field = place(item["loc"])
        shown = shows is None or shows(item)
        said = fault(item, known, shows=shown)
        yield f"{field}: {said}" if field else said


def items(error: ValidationFailed) -> list[Any]:
    """List the faults, without what only says that a value may also be left out: what may be is a
    union for pydantic, which complains of each of its members under a name of its own."""
    found = error.errors()
    optional = {item["loc"][:-1] for item in found if item["type"] == "none_required"}
    within = [item for item in found if item["type"] != "none_required"]
    return [
        {**item, "loc": item["loc"][:-1]} if item["loc"][:-1] in optional else item
        for item in within
    ] or list(found)


def fault(item: Any, known: Iterable[str] = (), *, shows: bool = True) -> str:
    """Say what is wrong with one value, and show it, unless it may be a secret."""
    kind, context = str(item["type"]), item.get("ctx") or {}
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return f"there is no such field{suggestion(str(item['loc'][-1]), known)}"
    if kind in {"value_error", "assertion_error"}:
        return str(context.get("error", "cannot be used"))
    said = _what(kind, context)
    if kind in {"literal_error", "enum"} and isinstance(item["input"], str):
        return f"{said}, got {value(item['input'])}" + meant(item["input"], _choices(context))
    return f"{said}, got {value(item['input'])}" if shows else said


def _what(kind: str, context: Mapping[str, Any]) -> str:
    if kind in {"literal_error", "enum"}:
        return f"must be one of {', '.join(_choices(context))}"
    if kind in {"string_too_short", "too_short"}:
        least = context["min_length"]
        unit = "characters" if kind == "string_too_short" else "entries"
        return "must not be empty" if least == 1 else f"must have at least {least} {unit}"
    if kind in _BOUNDS:
        return _BOUNDS[kind].format_map(context)
    if kind in _FIXED:
        return _FIXED[kind]
    return next((said for begin, said in _BEGINNINGS if kind.startswith(begin)), "cannot be used")


def _choices(context: Mapping[str, Any]) -> list[str]:
    """Take the choices out of what pydantic says of them: ``'a', 'b' or 'c'``."""
    return str(context.get("expected", "")).replace("' or '", "', '").strip("'").split("', '")


def value(given: object) -> str:
    """Write a value for a message: as JSON has it, and not all of what is long."""
    try:
        text = json.dumps(given, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(given)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def meant(typed: str, known: Iterable[str]) -> str:
    """Ask ``; did you mean X?`` where one of the known words is close; else say nothing."""
    words = {each.lower(): each for each in known}
    close = get_close_matches(typed.lower(), words, n=1)
    if not close and len(typed) > 1:
        close = [each for each in words if each.startswith(typed.lower())][:1]
    return f"; did you mean {words[close[0]]}?" if close else ""


def suggestion(typed: str, known: Iterable[str]) -> str:
    """Suggest a known word, or list them where none is close."""
    words = list(known)
    return meant(typed, words) or (f"; there are {', '.join(words)}" if words else "")


def few(names: Sequence[str], most: int = 3) -> str:
    """Name some, and count the others: ``a, b, c and 57 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def system(error: OSError) -> str:
    """Say what the system complains of."""
    said = _SYSTEM.get(error.errno or 0)
    return said or str(error.strerror or type(error).__name__).lower()


def unreadable(error: Exception) -> str:
    """Say why a file cannot be read, whether the system or what it holds is in the way."""
    if isinstance(error, OSError):
        return system(error)
    if isinstance(error, UnicodeDecodeError):
        return f"it is no text in UTF-8 (byte {error.start})"
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON at line {error.lineno}, column {error.colno}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if type(error).__name__ == "TOMLDecodeError":
        return f"it is no TOML {str(error).rpartition('(')[2].rstrip(')')}"
    mark = getattr(error, "problem_mark", None)  # of YAML
    if mark is not None:
        return f"it is no YAML at line {mark.line + 1}, column {mark.column + 1}"
    return " ".join(str(error).split())


_CLOSES: Final = "it closes the connection, or speaks no HTTP: is it https:// there?"


def unanswered(error: BaseException) -> str:
    """Say why somebody did not answer over HTTP."""
    causes = list(_causes(error))
    for each in causes:
        if isinstance(each, ssl.SSLCertVerificationError):
            why = each.verify_message
            return f"its certificate is not trusted ({why}): SSL_CERT_FILE names those that are"
        if isinstance(each, ssl.SSLError):
            return "it does not speak TLS there: is it http:// instead of https://?"
    names = [type(each).__name__ for each in causes]
    for name, said in (
        ("gaierror", "the name of the host is not known"),
        ("ConnectionRefusedError", "nobody listens there"),
        ("ConnectTimeout", "nobody answers there"),
        ("ReadTimeout", "it took the request and gave no answer in time"),
        ("WriteTimeout", "it does not take the request"),
        ("PoolTimeout", "all connections are busy"),
        ("UnsupportedProtocol", "the URL must begin with http:// or https://"),
        ("RemoteProtocolError", _CLOSES),
        ("ConnectionResetError", _CLOSES),
        ("BrokenPipeError", _CLOSES),
        ("TooManyRedirects", "it redirects without end"),
    ):
        if name in names:
            return said
    of_system = next((each for each in causes if isinstance(each, OSError) and each.errno), None)
    return "the connection broke" if of_system is None else system(of_system)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
