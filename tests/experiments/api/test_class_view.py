"""A request class as the API shows it: the ways in which its requests go."""

from __future__ import annotations

from ldfi.experiments.api.views import ClassView
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.testing.programs import Call, Step
from tests.experiments.simulated import Application, a_class, serving


def test_ways_that_nothing_tells_apart_are_listed_of_a_class_that_is_unfit() -> None:
    traffic = Traffic()
    for way, requests in (("films", 60), ("songs", 40)):
        calls = tuple(Step("critical", (Call(each),)) for each in ("session", way))
        application = Application(serving(Call("root", calls)))
        for _ in range(requests):
            traffic.observe(application.request(), now=0.0)
    known = a_class(traffic)
    assert ClassView.of(known, 1.0).varieties == []

    known.consistency = 0.6

    shown = ClassView.of(known, 1.0)
    assert shown.unfit
    assert [(each.requests, each.support) for each in shown.varieties] == [
        (60, ["films", "session"]),
        (40, ["session", "songs"]),
    ]
