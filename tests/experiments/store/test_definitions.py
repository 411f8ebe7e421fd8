"""What was asked for, as the store keeps it: read back as it was, also by a later release."""

from __future__ import annotations

import json

from ldfi.experiments.domain.campaign.calendar import Calendar, Schedule
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.settings import PromqlOutcome, Settings
from ldfi.experiments.store.campaigns import definition_from_json, definition_to_json

EARLIER = """{
    "name": "nightly",
    "classes": ["GET /boot*"],
    "settings": {
        "max_size": 2, "kinds": ["error", "delay"], "strategy": "union", "max_union": 10,
        "seed": 0, "delay": 10.0, "treatment": 0.05, "control": 0.05, "members": 50,
        "member_budget": 10000, "concurrency": 3, "rule": "threshold",
        "thresholds": {
            "alpha_harmful": 0.001, "alpha_tolerated": 0.05, "delta": 0.4, "min_samples": 8
        },
        "fdr": 0.05, "window": 30.0, "settle": 5.0, "confirm": true, "verify": true,
        "rechecks": 2, "min_traffic": 100, "min_consistency": 0.95, "on_drift": "reopen",
        "guardrail": 0.3, "promql": {"failures": "bad", "total": "all"}, "approve_above": 4.0
    },
    "calendar": null,
    "schedule": null,
    "hypotheses": [["error@a", "error@b"]]
}"""
"""As it was written while the thresholds were a document of their own."""


def test_a_campaign_that_an_earlier_release_has_started_goes_on() -> None:
    assert definition_from_json(json.loads(EARLIER)) == Definition(
        settings=Settings(
            treatment=0.05,
            control=0.05,
            members=50,
            delta=0.4,
            min_samples=8,
            rule="threshold",
            promql=PromqlOutcome("bad", "all"),
            approve_above=4.0,
            window=30.0,
            max_union=10,
        ),
        classes=("GET /boot*",),
        name="nightly",
        hypotheses=(frozenset({"error@a", "error@b"}),),
    )


def test_what_was_asked_for_is_read_back_as_it_was() -> None:
    asked = Definition(
        settings=Settings(kinds=("delay",), promql=PromqlOutcome("bad", "all"), max_union=None),
        classes=("GET /boot",),
        name="weekly",
        calendar=Calendar.from_json(
            {"timezone": "UTC", "days": ["mon"], "hours": None, "blackouts": []}
        ),
        schedule=Schedule.from_json({"cron": "0 9 * * mon", "timezone": "UTC"}),
    )

    kept = json.loads(json.dumps(definition_to_json(asked)))

    assert definition_from_json(kept) == asked
