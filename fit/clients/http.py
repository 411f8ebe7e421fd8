"""What the HTTP clients have in common: ``url.template``, where the call's span carries it, and
what a call is called by a library above that knows better than its URL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from ldfi.fit.inject import SPAN, current

PASSED: Final = "ldfi.passed"
"""Among the extensions of a request of httpx that has passed its point above the transport."""


Rule = Callable[[str], str | None]
"""(service) → the point's name, or None where the URL names it."""
rule: ContextVar[Rule | None] = ContextVar("fit-http-name", default=None)
"""What the library above calls the calls that are going on; read where every call passes."""


@contextmanager
def called(name: Rule) -> Iterator[None]:
    """Name the calls of a block by this rule."""
    token = rule.set(name)
    try:
        yield
    finally:
        rule.reset(token)


def template() -> str:
    """Read the template of the current call's URL; empty where nobody gave one.

    The SDK's spans are looked into directly, which is many times quicker than asking them; where
    their insides have changed they are asked.
    """
    span: Any = current().get(SPAN)
    try:
        attributes = span._attributes._dict
    except AttributeError:
        attributes = getattr(span, "attributes", None) or {}
    return str(attributes.get("url.template", ""))
