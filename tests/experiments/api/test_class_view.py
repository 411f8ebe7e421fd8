"""A request class as the API shows it: the ways in which its requests go."""

from __future__ import annotations

from ldfi.experiments.api.class_view import ClassView
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.injectors import Injectors
from ldfi.fit.protocol.reach import InjectorReport
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
    assert ClassView.of(known, 1.0, Injectors()).varieties == []

    known.consistency = 0.6

    shown = ClassView.of(known, 1.0, Injectors())
    assert shown.unfit
    assert [(each.requests, each.support) for each in shown.varieties] == [
        (60, ["films", "session"]),
        (40, ["session", "songs"]),
    ]


def test_calls_without_an_injector_are_listed_with_what_to_install() -> None:
    point = "api>db:SELECT:shop/marks"
    traffic, injectors = Traffic(), Injectors()
    program = Call("root", tuple(Step("critical", (Call(each),)) for each in (point, "api>rpc:x")))
    application = Application(serving(program))
    for _ in range(20):
        traffic.observe(application.request(), now=0.0)
    known = a_class(traffic)
    assert ClassView.of(known, 1.0, injectors).no_injector == {}
    injectors.hear(InjectorReport.parse("1 node/0.2.0 api>rpc:*"), 0.0)
    assert ClassView.of(known, 1.0, injectors).no_injector == {
        point: "fit in api, for a client library that fit knows"
    }
