"""Putting wrappers into libraries, and taking them out again.

A library is patched when it is imported, never imported for being patched. Wrappers are plain
functions set on its classes, and know nothing of each other; :func:`put` remembers what was there.
A wrapper that somebody else has wrapped in the meantime cannot be taken out without breaking that:
it stays, and does nothing, for without a runtime there is nothing to obey.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ldfi.fit import runtime

_log = logging.getLogger("fit")
_MARK = "_fit_original"
_undo: list[Callable[[], None]] = []


def put(owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    """Replace ``owner.name``, a function, by ``wrap(function)``. Again does nothing.

    Where OpenTelemetry has wrapped it already, ours goes beneath: the point must lie within the
    call's span. Raises AttributeError where there is no such function.
    """
    undo = _put(owner, name, wrap)
    if undo is not None:
        when_taken_out(undo)


@contextmanager
def meanwhile(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Iterator[None]:
    """Do what :func:`put` does, as long as this lasts."""
    undo = _put(owner, name, wrap)
    try:
        yield
    finally:
        if undo is not None:
            undo()


def _put(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Callable[[], None] | None:
    outer, function = _innermost(owner, name)
    if hasattr(function, _MARK):
        return None
    wrapper = functools.wraps(function)(wrap(function))
    setattr(wrapper, _MARK, function)
    if outer is None:
        setattr(owner, name, wrapper)
    else:
        outer.__wrapped__ = wrapper
    return lambda: _restore(owner, name, wrapper)


def beneath(owner: Any, name: str) -> Any:
    """Return the function that OpenTelemetry may have wrapped there."""
    return _innermost(owner, name)[1]


def when_taken_out(undo: Callable[[], None]) -> None:
    """Remember how to undo something."""
    _undo.append(undo)


def take_out_all() -> None:
    """Undo everything, the latest first."""
    while _undo:
        _undo.pop()()


def _restore(owner: Any, name: str, wrapper: Any) -> None:
    outer, function = _innermost(owner, name)
    if function is not wrapper:
        return
    if outer is None:
        setattr(owner, name, getattr(wrapper, _MARK))
    else:
        outer.__wrapped__ = getattr(wrapper, _MARK)


def _innermost(owner: Any, name: str) -> tuple[Any, Any]:
    """Find the function beneath wrapt's proxies, and the last of these, or None without any."""
    function = vars(owner)[name] if name in vars(owner) else getattr(owner, name)
    outer = None
    proxy = getattr(sys.modules.get("wrapt"), "FunctionWrapper", None)
    while proxy is not None and isinstance(function, proxy):
        outer, function = function, function.__wrapped__
    return outer, function


def when_imported(module: str, patch: Callable[[], None]) -> None:
    """Call ``patch`` once ``module`` has been imported: now, where it is."""
    if module in sys.modules:
        _try(module, patch)
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.waiting[module] = patch


def stop_waiting() -> None:
    """Forget what has not been imported yet."""
    _finder.waiting.clear()
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def _try(module: str, patch: Callable[[], None]) -> None:
    try:
        patch()
    except Exception as error:
        _log.warning("no injection points in %s: %s: %s", module, type(error).__name__, error)


class _Finder(MetaPathFinder):
    """Lets the others find a module that is waited for, and adds to the end of its execution."""

    def __init__(self) -> None:
        self.waiting: dict[str, Callable[[], None]] = {}

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        """Patch a module that is being imported, where one waits for it (Python's import
        protocol)."""
        patch = self.waiting.pop(fullname, None)  # once: the search below passes here again
        if patch is None:
            return None
        try:
            spec = find_spec(fullname)
            if spec is None or spec.loader is None:
                self.waiting[fullname] = patch
                return None
            _after_execution(spec.loader, fullname, patch)
        except Exception:
            runtime.swallow()
            return None
        return spec


def _after_execution(loader: Any, name: str, patch: Callable[[], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        _try(name, patch)

    loader.exec_module = exec_module


_finder = _Finder()
