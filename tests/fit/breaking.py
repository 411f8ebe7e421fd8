"""Breaking our own code on purpose, one function at a time."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import pytest

from ldfi.fit.inject import Site

GUARDS = frozenset(
    {
        *("through", "through_async", "swallow", "armed"),
        *("_pass", "_hit", "_execute", "_execute_alone", "_serves"),
    }
)
"""What stands between a failure inside and the host: the wrappers and what they call first.
Everything else may break."""


class BrokenInsideError(Exception):
    """What our own code raises in these tests."""


def functions(module: ModuleType) -> Iterator[tuple[Any, str]]:
    """Every function and method that a module of ours defines, and where it hangs."""
    for name, found in vars(module).items():
        if getattr(found, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(found):
            for inner, method in vars(found).items():
                if inspect.isfunction(method) and method.__module__ == module.__name__:
                    yield found, inner
        elif callable(found) and name not in GUARDS:
            yield module, name


def breaking(
    owner: Any, name: str, inside: Iterable[ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make one function raise, also where a site of the modules ``inside`` holds it."""

    def broken(*_: Any, **__: Any) -> Any:
        raise BrokenInsideError(name)

    monkeypatch.setattr(owner, name, broken)
    for module in inside:
        for key, site in list(vars(module).items()):
            if isinstance(site, Site):
                held = {part: getattr(site, part).__name__ for part in site._fields}
                replaced = {part: broken for part, called in held.items() if called == name}
                monkeypatch.setattr(module, key, site._replace(**replaced))
