"""The exceptions of ``experiments``, a branch of the tree in :mod:`fit.errors`.

LdfiError
└── ExperimentsError
    ├── NotFound        there is no such campaign, experiment or finding
    ├── Halted          everything is halted until ``ldfi resume``
    ├── Conflict        what is asked for contradicts what is there
    ├── InvalidMetric   a device metric that cannot be read
    └── Unreachable     the service does not answer
"""

from __future__ import annotations

from fit.errors import LdfiError


class ExperimentsError(LdfiError):
    """Raised by the service."""


class NotFound(ExperimentsError):  # noqa: N818
    """Raised for an identifier that names nothing."""


class Halted(ExperimentsError):  # noqa: N818
    """Raised when something would inject while everything is halted."""


class Conflict(ExperimentsError):  # noqa: N818
    """Raised when what is asked for contradicts what is there."""


class Unreachable(ExperimentsError):  # noqa: N818
    """Raised by the command line when the service does not answer."""
