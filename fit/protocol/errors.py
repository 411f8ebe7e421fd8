"""The exceptions of ldfi, one tree.

    LdfiError
    ├── FitError
    │   ├── KeyFormatError        FIT_KEYS cannot be read
    │   ├── ContextError          a failure context is not to be obeyed
    │   │   ├── MalformedContext  it is not one of ours, or it was cut short
    │   │   ├── ForgedContext     its MAC does not verify, or its key is unknown
    │   │   └── ExpiredContext    it was one of ours, but its time has passed
    │   ├── MalformedRules        the control plane's answer is not understood
    │   └── InjectedFault         what a decorated function raises when a fault fires
    ├── ldfi.lineage.errors.LineageError …
    └── ldfi.errors.ExperimentsError …

``solver`` imports nothing of ours, so its own ``SolverError`` stands beside this tree.
"""

from __future__ import annotations

from ldfi.errors import LdfiError


class FitError(LdfiError):
    """Raised by the part that runs inside services under test."""


class KeyFormatError(FitError):
    """Raised when the signing keys cannot be read; injection stays off."""


class ContextError(FitError):
    """Raised for a failure context that must not be obeyed. Data: ``reason``, one word."""

    reason = "invalid"


class MalformedContext(ContextError):  # noqa: N818 - reads as what it is
    """Raised for a value that is no failure context: wrong shape, alphabet or size."""

    reason = "malformed"


class ForgedContext(ContextError):  # noqa: N818
    """Raised for a failure context whose MAC does not verify under any known key."""

    reason = "forged"


class ExpiredContext(ContextError):  # noqa: N818
    """Raised for a failure context that was signed by us but is past its expiry."""

    reason = "expired"


class MalformedRules(FitError):  # noqa: N818
    """Raised for an answer of the control plane that is not understood as a whole."""


class InjectedFault(FitError):  # noqa: N818
    """Raised at a decorated injection point when an ``error`` fault fires there."""
