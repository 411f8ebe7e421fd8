"""One way to write each JSON value down, so that equal values have equal hashes (RFC 8785).

Keys are sorted by their UTF-16 code units, numbers are written as ECMAScript does, nothing is
escaped that need not be. What two readers might read differently is refused: a name given twice,
numbers that no double holds, half a surrogate pair.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any, Final

from ldfi.checker.errors import Unreadable

DEEPEST: Final = 40
"""How many levels a document may have; ours have eight."""
_EXACT: Final = 2**53
"""Whole numbers beyond this are not the same to every reader."""


def canonical(value: Any) -> bytes:
    """Write a value as canonical JSON in UTF-8. Raises ValueError for what has no such form."""
    return _write(value).encode("utf-8")


def read(text: str | bytes) -> Any:
    """Read JSON that has one meaning only. Raises Unreadable for anything else."""
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_refused, parse_int=_whole)
        _shallow(value)
    except (ValueError, OverflowError, RecursionError) as error:
        raise Unreadable(f"this is not JSON that every parser reads alike: {error}") from error
    return value


def number(value: float) -> str:
    """Write a double as ECMAScript does: the shortest digits that mean it."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a number in JSON")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    digits, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, part = digits.partition(".")
    part = "" if part == "0" else part
    point = len(whole) + int(exponent or 0)
    bare = (whole + part).lstrip("0")
    point -= len(whole + part) - len(bare)
    bare = bare.rstrip("0")
    count = len(bare)
    if count <= point <= 21:
        return f"{sign}{bare}{'0' * (point - count)}"
    if 0 < point <= 21:
        return f"{sign}{bare[:point]}.{bare[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{bare}"
    power = point - 1
    mantissa = bare if count == 1 else f"{bare[0]}.{bare[1:]}"
    return f"{sign}{mantissa}e{'+' if power > 0 else '-'}{abs(power)}"


def _write(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        if abs(value) > _EXACT:
            raise ValueError(f"{value} is not a number that every reader has")
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_write, value))}]"
    if isinstance(value, dict):
        names = [(*_name(each), each) for each in value]
        names.sort()
        return "{" + ",".join([f"{name}:{_write(value[key])}" for _, name, key in names]) + "}"
    raise ValueError(f"{type(value).__name__} is nothing that JSON has")


_text: Final = json.JSONEncoder(ensure_ascii=False).encode


@lru_cache(maxsize=1_000)
def _name(key: object) -> tuple[bytes, str]:
    """Return what a name is sorted by, and how it is written: there are few of them."""
    if not isinstance(key, str):
        raise ValueError(f"{key!r} is not a name")  # noqa: TRY004 - as all that has no such form
    return key.encode("utf-16-be", "surrogatepass"), _text(key)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _refused(name: str) -> float:
    raise ValueError(f"{name} is not a number in JSON")


def _whole(digits: str) -> float:
    value = int(digits)
    if abs(value) <= _EXACT:
        return value
    if number(float(value)) != digits:
        raise ValueError(f"{digits} is not a number that every reader has")
    return float(value)


def _shallow(value: Any) -> None:
    """Raise ValueError for what is too deep, or what no reader holds."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise ValueError(f"it is more than {DEEPEST} levels deep")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    if isinstance(value, str):
        value.encode("utf-8")
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []
