"""What a good answer is, as it is typed: ``status==200``, ``json.items``, ``json.total==3``."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ldfi.errors import Invalid

_FORM: Final = re.compile(
    r"(?P<what>status|json(?:\.[\w-]+)+)\s*(?:(?P<how>==|!=|<=|>=|<|>)\s*(?P<value>.+))?"
)
_HOW: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class InvalidAssertion(Invalid):
    """Raised for an assertion that cannot be read; the message shows it."""


@dataclass(frozen=True, slots=True)
class AnswerAssertion:
    """One thing that is asserted of every answer. Without ``how``: it is there and not empty."""

    text: str
    path: tuple[str, ...]
    how: str = ""
    value: Any = None

    @classmethod
    def parse(cls, text: str) -> AnswerAssertion:
        """Read one. Raises InvalidAssertion."""
        match = _FORM.fullmatch(text.strip())
        if match is None or (match["what"] == "status" and not match["how"]):
            raise InvalidAssertion(
                f"{text!r} is not an assertion; write status==200, json.items or json.total==3"
            )
        given = match["value"] or "null"
        try:
            value = json.loads(given)
        except (ValueError, RecursionError):
            value = given.strip()
        return cls(text, tuple(match["what"].split(".")), match["how"] or "", value)

    def holds(self, status: int, body: bytes) -> bool:
        """Return whether it holds of an answer."""
        found = status if self.path == ("status",) else _found(body, self.path[1:])
        if not self.how:
            return found not in (None, "", [], {}, False)
        try:
            return _HOW[self.how](found, self.value)
        except TypeError:
            return False


def _found(body: bytes, path: tuple[str, ...]) -> Any:
    try:
        here = json.loads(body)
    except (ValueError, RecursionError):
        return None
    for name in path:
        if isinstance(here, list) and name.isdecimal() and int(name) < len(here):
            here = here[int(name)]
        elif isinstance(here, dict):
            here = here.get(name)
        else:
            return None
    return here
