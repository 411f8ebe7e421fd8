"""What the HTTP clients have in common: ``url.template``, where the call's span carries it."""

from __future__ import annotations

from typing import Any, Final

from ldfi.fit.passage import SPAN, current

PASSED: Final = "ldfi.passed"
"""Among the extensions of a request of httpx that has passed its point above the transport."""


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
