"""The exceptions of ``experiments``, a branch of the tree in :mod:`ldfi.fit.protocol.errors`.

LdfiError
└── ExperimentsError
    ├── NotFound        there is no such campaign, experiment or finding
    ├── Halted          everything is halted until ``ldfi resume``
    ├── Conflict        what is asked for contradicts what is there
    │   └── CannotDecide    with the traffic there is, no verdict could be reached
    ├── Deposed         this process led, and another one does now
    ├── InvalidMetric   a device metric that cannot be read
    ├── Unreachable     the service does not answer
    ├── Invalid         a document or setting that cannot be taken as it is
    │   ├── InvalidCalendar     zone, days, hours, blackouts or cron text
    │   ├── InvalidMaintenance  a maintenance window
    │   ├── InvalidGuardrail    PromQL that is no condition
    │   ├── InvalidTarget       where a notification shall go
    │   ├── InvalidReplay       what shall be replayed
    │   ├── InvalidScenario     a scenario that cannot be read, made or sent
    │   └── InvalidConfig       an option that is unknown or out of range
    ├── NotExpressible  a fault that the target of an export cannot carry out
    ├── PrometheusError  Prometheus gave no usable answer
    ├── NotDelivered     a notification that did not get through
    ├── StreamError      a stream does not do what it is asked
    │   └── MessageTooLarge     a message larger than brokers take
    └── UnreadableMessage  a message of a stream that cannot be read
"""

from __future__ import annotations


class LdfiError(Exception):
    """The root of every exception that ldfi raises on purpose."""


class ExperimentsError(LdfiError):
    """Raised by the service."""


class NotFound(ExperimentsError):  # noqa: N818
    """Raised when there is nothing with the identifier that was given. The message shows it."""


class Halted(ExperimentsError):  # noqa: N818
    """Raised when something would inject while everything is halted."""


class Conflict(ExperimentsError):  # noqa: N818
    """Raised when what is asked for contradicts what is there."""


class CannotDecide(Conflict):
    """Raised for a campaign that could not decide anything. The message has the figures, and what
    would do."""


class Deposed(ExperimentsError):  # noqa: N818
    """Raised when a leader would write although another one has come after it."""


class Unreachable(ExperimentsError):  # noqa: N818
    """Raised by the command line when the service does not answer."""


class Invalid(ExperimentsError):  # noqa: N818
    """Raised for a document or setting that cannot be taken as it is."""


class InvalidCalendar(Invalid):
    """Raised for a time zone, day, hour, blackout or cron text that cannot be read."""


class InvalidMaintenance(Invalid):
    """Raised for a maintenance window without owner, reason or a proper end."""


class InvalidGuardrail(Invalid):
    """Raised for PromQL that is no condition: it would hold whatever happens."""


class InvalidTarget(Invalid):
    """Raised for a notification target without a proper URL or secret."""


class InvalidReplay(Invalid):
    """Raised when a request must not be replayed, or cannot be."""


class InvalidScenario(Invalid):
    """Raised for a scenario that cannot be read, made of a finding, or sent as it is."""


class InvalidConfig(Invalid):
    """Raised when the configuration cannot be used; the message lists every fault in it."""


class PrometheusError(ExperimentsError):
    """Raised when Prometheus gives no usable answer. A guardrail counts that as a breach."""


class NotDelivered(ExperimentsError):  # noqa: N818
    """Raised when a notification did not get through, after the last attempt."""


class NotExpressible(ExperimentsError):  # noqa: N818
    """Raised for a fault that the target of an export cannot carry out as it is meant."""


class StreamError(ExperimentsError):
    """Raised when a stream cannot be read or written now; it may have been, nobody knows."""


class MessageTooLarge(StreamError):  # noqa: N818
    """Raised for a message larger than brokers take; no use in trying again."""


class UnreadableMessage(ExperimentsError):  # noqa: N818
    """Raised for a message that cannot be read; it goes to the dead letters."""
