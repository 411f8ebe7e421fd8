"""Requests in an old form: they are done as ever, and the answer says that the form is old.

The header is RFC 9745's: since when it is, and by ``Link`` where its successor is described. A
document that knows old forms of itself lists those that were used (:meth:`Document.old_forms`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from fastapi import Response

from ldfi.experiments.api.input_documents import Document

SINCE: Final = 1_795_305_600
"""22 November 2026, when 0.2.0 brought the forms that are read and written alike; Unix seconds."""

DESCRIBED: Final = "https://ldfi.dev/api/#old-forms"

Read = TypeVar("Read", bound=Document)


def noting(kind: type[Read]) -> Callable[..., Awaitable[Read]]:
    """Make a dependency: the body of a request, of this kind, whose answer has the header where the
    body is in an old form."""

    async def read(document: Read, response: Response) -> Read:
        if document.old_forms():
            response.headers["Deprecation"] = f"@{SINCE}"
            response.headers["Link"] = f'<{DESCRIBED}>; rel="deprecation"; type="text/html"'
        return document

    read.__annotations__ = {"document": kind, "response": Response}
    return read
