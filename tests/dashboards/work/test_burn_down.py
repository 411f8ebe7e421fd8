"""The line of open questions: what is drawn of it, and when it is expected to end."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from ldfi.dashboards.work.burn_down import BurnDown, Point, expected, pauses, picture
from ldfi.experiments.domain.campaign.calendar import Calendar
from ldfi.experiments.store.schema import AuditRow

UTC = ZoneInfo("UTC")
HOUR = 3_600.0
MONDAY = 1_764_547_200.0
"""2025-12-01 00:00 UTC."""


def falling(*counts: int, since: float = MONDAY, every: float = HOUR) -> list[Point]:
    return [Point(since + at * every, count) for at, count in enumerate(counts)]


def test_it_goes_on_as_from_the_peak_until_now() -> None:
    # Given ten questions answered in five hours since the most were open, and five left
    points = falling(3, 15, 14, 11, 9, 7, 5)
    # Then these take two and a half hours more
    assert expected(points, None) == points[-1].at + 2.5 * HOUR


def test_nights_are_not_counted_and_nothing_ends_in_them() -> None:
    days = Calendar("UTC", (), ("09:00", "17:00"))
    points = falling(40, 30, 20, 10, since=MONDAY + 14 * HOUR)
    # Ten an hour, and at 17:00 it closes: the last ten come the next morning
    assert expected(points, days) == MONDAY + 24 * HOUR + 10 * HOUR


def test_nothing_is_expected_of_too_little_or_of_what_does_not_fall() -> None:
    assert expected(falling(9, 5, 1), None) is None
    assert expected(falling(1, 2, 3, 4, 5), None) is None
    assert expected(falling(9, 6, 3, 0), None) is None
    assert expected([], None) is None


def test_who_paused_it_and_for_how_long() -> None:
    def row(at: float, what: str, who: str = "ann", why: str = "") -> AuditRow:
        return AuditRow(at=at, who=who, what=f"campaign {what}", subject="c", why=why)

    done = [
        row(9, "paused", "kim", "<lunch>"),
        row(5, "running"),
        row(2, "paused"),
        row(0, "running"),
    ]
    assert pauses(done, 12.0) == [
        ((9, 12.0), "paused by kim: <lunch>"),
        ((2, 5), "paused by ann: "),
    ]


def test_names_are_text_in_the_picture() -> None:
    points = [Point(0, 4, "GET /<b>: x fails", "/experiments/a"), Point(60, 2), Point(120, 2)]
    drawn = picture(BurnDown(points, [((30, 60), "paused by <i>")], 200.0), UTC)
    assert "GET /&lt;b&gt;: x fails" in drawn
    assert "paused by &lt;i&gt;" in drawn
    assert 'href="/experiments/a"' in drawn
    assert "<b>" not in drawn
    assert not BurnDown(points[:1]).drawn
    assert not BurnDown([Point(0, 0), Point(9, 0)]).drawn
