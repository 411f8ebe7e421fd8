"""What begins after the answer is named and left out: nothing is complete without it."""

from __future__ import annotations

import pytest

from ldfi.checker.solving import examine
from ldfi.experiments.domain.campaign.ending import left_open
from ldfi.experiments.domain.campaign.experiment_tally import Trials
from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.solver_input import AFTER
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.lineage.lineage import Lineage
from ldfi.testing.spans import lineage, span
from tests.kit.observations import observation

STOCK, MAIL = "api>http:GET:stock/*", "api>http:POST:mail/send"
SETTINGS = Settings(kinds=("error",), max_size=1)
MS = 1_000_000


def request(
    begins: float, kind: str = "client", *, lasts: float = 400, mails: bool = True
) -> Lineage:
    """An order that is answered after 20 ms, and mails a receipt from so many on."""
    at = (round(begins * MS), round((begins + lasts) * MS))
    return lineage(
        span("root", kind="server", at=(0, 20 * MS)),
        span("stock", "root", point=STOCK, at=(MS, 2 * MS)),
        *([span("mail", "root", kind, point=MAIL, at=at)] if mails else []),
    )


def traffic_of(*runs: Lineage) -> Traffic:
    traffic = Traffic()
    for number, run in enumerate(runs):
        traffic.observe(observation(run, number=number), now=0.0)
    return traffic


def named(traffic: Traffic, *only: str, protected: tuple[str, ...] = ()) -> dict[str, str]:
    """What a run says to have left out, with a reason for each."""
    knowledge = Knowledge("POST /orders", SETTINGS, traffic, protected)
    asked = tuple(frozenset({each}) for each in only)
    left = left_open(Exploration(knowledge, only=asked), Trials())
    assert left is None or left.within == bool(left.why or left.unreached)
    return {} if left is None else dict(left.out_of_bounds)


@pytest.mark.parametrize("begins", [21.5, 300, 30_000])
def test_what_begins_after_the_answer_is_left_out_by_name(begins: float) -> None:
    traffic = traffic_of(*[request(begins)] * 30)
    # It is named, and no run is complete without it
    assert named(traffic) == {MAIL: AFTER}
    assert named(Traffic.from_json(traffic.to_json())) == {MAIL: AFTER}
    # The certificate names it, holds, and says what of it nobody asked for
    knowledge = Knowledge("POST /orders", SETTINGS, traffic)
    report = examine(knowledge.certificate()["certificate"])
    assert not report.problems
    (told,) = report.assumed["no injector, and not tried"]
    assert told.startswith(f"refused@{MAIL}: ")
    assert frozenset({f"refused@{MAIL}"}) in report.left_out
    # And what the answer needs is still to be tried
    assert knowledge.solver_input.explorer.open_count() == 1


def test_whoever_says_so_leaves_it_out_on_purpose() -> None:
    assert named(traffic_of(*[request(300)] * 30), protected=("*>http:*:mail/*",)) == {}


def test_who_asks_for_something_else_is_not_told_of_it() -> None:
    traffic = traffic_of(*[request(300)] * 30)
    assert named(traffic, f"refused@{STOCK}") == {}
    assert named(traffic, f"refused@{MAIL}") == {MAIL: AFTER}


@pytest.mark.parametrize("outlasts", [True, False])
def test_what_outlasts_a_request_that_does_not_wait_is_left_out_too(outlasts: bool) -> None:
    run = request(5, "consumer", lasts=400 if outlasts else 5)
    traffic = traffic_of(*[run] * 30)
    assert named(traffic) == ({MAIL: AFTER} if outlasts else {})


def test_what_some_requests_wait_for_is_tried_with_these() -> None:
    traffic = traffic_of(*[request(5)] * 10, *[request(300)] * 30)
    assert named(traffic) == {}
    knowledge = Knowledge("POST /orders", SETTINGS, traffic)
    assert frozenset({f"refused@{MAIL}"}) in knowledge.solver_input.explorer.open_hypotheses()


def test_what_hardly_any_request_begins_is_not_named() -> None:
    runs = [request(300), *[request(300, mails=False)] * 200]
    assert named(traffic_of(*runs)) == {}


@pytest.mark.parametrize("name", [MAIL, "store: pack"])
def test_calls_of_which_spans_came_too_late_are_left_out(name: str) -> None:
    traffic = traffic_of(*[request(300, mails=False)] * 30)
    traffic.set_aside("late", [name], 30)
    assert named(traffic) == ({MAIL: AFTER} if name == MAIL else {})
