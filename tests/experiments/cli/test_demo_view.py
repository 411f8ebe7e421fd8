"""The demo says what it waits for."""

from __future__ import annotations

from ldfi.experiments.cli.demo_view import traffic_so_far


def test_traffic_says_what_is_missing_and_what_goes_wrong() -> None:
    assert "no whole trace" in traffic_so_far([], 60)
    boot = {"name": "GET /boot", "good": 12, "success_rate": 0.02}
    play = {"name": "GET /play", "good": 75, "success_rate": 1.0}
    assert traffic_so_far([play, boot], 60) == (
        "Watching traffic: GET /boot 12 of 60 good requests, 2% of all go well; "
        "GET /play 60 of 60 good requests."
    )
