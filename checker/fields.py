"""Reading documents strictly: every field is there, of its type and range, and no other is."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

from ldfi.checker.errors import Unreadable

Item = TypeVar("Item")
_HEX: Final = frozenset("0123456789abcdef")


class Fields:
    """The fields of one object, taken one by one. ``where``: what it is, for people.

    Raises Unreadable for what is not as it has to be; :meth:`done` does for what nobody took.
    """

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise Unreadable(f"{where} is not an object")
        self._left, self.where = dict(value), where

    def take(self, name: str) -> Any:
        """Take a field as it is."""
        if name not in self._left:
            raise Unreadable(f"{self.where} has no {name!r}")
        return self._left.pop(name)

    def has(self, name: str) -> bool:
        """Return whether a field has a value; one that is null is taken, as if it were absent."""
        if name in self._left and self._left[name] is None:
            self._left.pop(name)
        return name in self._left

    def text(self, name: str, among: Collection[str] | None = None) -> str:
        """Take a string. ``among``: one of these."""
        value = self.take(name)
        if not isinstance(value, str) or (among is not None and value not in among):
            raise Unreadable(f"{self.where}: {name} is {value!r:.80}")
        return value

    def number(self, name: str, least: float, most: float) -> float:
        """Take a number within a range."""
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Unreadable(f"{self.where}: {name} is {value!r:.80}, no number")
        if not least <= value <= most:
            raise Unreadable(f"{self.where}: {name} is {value!r:.80}, out of range")
        return float(value)

    def whole(self, name: str, least: int = 0) -> int:
        """Take a whole number, ``least`` or more."""
        value = self.take(name)
        return whole(value, f"{self.where}: {name}", least)

    def flag(self, name: str) -> bool:
        """Take true or false."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise Unreadable(f"{self.where}: {name} is neither true nor false")
        return value

    def hashed(self, name: str) -> bytes:
        """Take a SHA-256."""
        return sha256(self.take(name), f"{self.where}: {name}")

    def many(self, name: str, read: Callable[[Any, str], Item]) -> tuple[Item, ...]:
        """Take a list, each item read by ``read``."""
        value = self.take(name)
        if not isinstance(value, list):
            raise Unreadable(f"{self.where}: {name} is not a list")
        return tuple(read(each, f"{self.where}: {name}[{n}]") for n, each in enumerate(value))

    def inner(self, name: str) -> Fields:
        """Take an object."""
        return Fields(self.take(name), f"{self.where}: {name}")

    def done(self) -> None:
        """Say that everything was taken."""
        if self._left:
            raise Unreadable(f"{self.where} has {min(self._left)!r:.80}, which means nothing")


def text(value: Any, where: str) -> str:
    """Read a string."""
    if not isinstance(value, str):
        raise Unreadable(f"{where} is {value!r:.80}, no string")
    return value


def whole(value: Any, where: str, least: int = 0) -> int:
    """Read a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise Unreadable(f"{where} is {value!r:.80}, no whole number from {least} on")
    return value


def wholes(value: Any, where: str, count: int) -> tuple[int, ...]:
    """Read so many whole numbers."""
    if not isinstance(value, list) or len(value) != count:
        raise Unreadable(f"{where} is {value!r:.80}, no {count} numbers")
    return tuple(whole(each, where) for each in value)


def sha256(value: Any, where: str) -> bytes:
    """Read a SHA-256 in lower-case hex."""
    if not isinstance(value, str) or len(value) != 64 or not set(value) <= _HEX:
        raise Unreadable(f"{where} is {value!r:.80}, no SHA-256")
    return bytes.fromhex(value)
