"""What the Kafka clients have in common: the name of the point where a consumer asks for messages.

No OpenTelemetry span is the asking itself, for a consumer's spans begin when a message has come:
the point is seen where a fault hits it, and in a span of ``fit``'s own.
"""

from __future__ import annotations

from collections.abc import Iterable

from ldfi.fit.points import message_point


def consumer_point(service: str, topics: Iterable[str]) -> str:
    """Name the point where messages of these topics are asked for."""
    return message_point(service, "receive", "kafka", ",".join(sorted(topics)))
