"""Times on the command line have 24 hours and their zone."""

from __future__ import annotations

from datetime import UTC, datetime

from ldfi.cli.campaign_view import event_line
from ldfi.cli.stream import Event


def test_a_line_of_what_happens_says_when_and_in_which_zone() -> None:
    at = datetime(2026, 11, 23, 15, 30, 13, tzinfo=UTC).timestamp()
    event = Event(at, "kim", "campaign paused", "3f1c9a52b7de", "release 42 goes out")
    said = "15:30:13 UTC campaign paused: release 42 goes out"
    assert event_line(event, None).plain == said
