"""What this room raises on purpose."""

from __future__ import annotations

from ldfi.errors import LdfiError


class Unreadable(LdfiError):  # noqa: N818 - it says what is so
    """A document, a key or a head is not what it has to be, so nothing can be said of it."""
