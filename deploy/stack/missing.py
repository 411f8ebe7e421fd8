"""What is raised where a server cannot be had."""

from __future__ import annotations

from ldfi.errors import LdfiError


class Missing(LdfiError):  # noqa: N818 - it names what is the matter
    """Raised where a server is not installed or does not start; the message says which, and how it
    is had."""
