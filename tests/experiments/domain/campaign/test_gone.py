"""An error is what a dead dependency looks like at its point; what was one before is left so."""

from __future__ import annotations

import pytest

from ldfi.experiments.api.new_campaign import NewExperiment
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.class_traffic import NATURAL_EVIDENCE, Traffic
from ldfi.experiments.domain.traffic.observed_kinds import shown_often
from ldfi.fit.protocol.faults import Fault
from ldfi.testing.spans import lineage, span
from tests.experiments.domain.campaign.test_exploration import tolerated
from tests.kit.observations import observation

ONE, OTHER, RPC = "api>http:GET:shop/a", "api>http:GET:shop/b", "api>rpc:Get:/shop.Prices"
POINTS = (ONE, OTHER, RPC)


def traffic_of(**failing: str) -> Traffic:
    """Requests that reach all three points; in some the first one fails so, and does no harm."""
    traffic = Traffic()
    whole = lineage(span("", kind="server"), *(span(p, "") for p in POINTS))
    broken = lineage(
        span("", kind="server"),
        span(ONE, "", failed=True, **failing),  # type: ignore[arg-type]
        *(span(p, "") for p in POINTS[1:]),
    )
    for run in (*[whole] * 200, *([broken] * (2 * NATURAL_EVIDENCE) if failing else [])):
        traffic.observe(observation(run), now=0.0)
    return traffic


def known(traffic: Traffic, **settings: object) -> Knowledge:
    given = {"max_size": 1, "kinds": ("error",)} | settings
    return Knowledge("GET /", Settings(**given), traffic)  # type: ignore[arg-type]


def tried(knowledge: Knowledge) -> set[str]:
    hypotheses = knowledge.solver_input.explorer.open_hypotheses()
    return {str(fault) for each in hypotheses for fault in each}


def test_over_http_the_connection_is_refused_and_elsewhere_the_library_fails() -> None:
    domain = {"down@shop"}
    errors = {f"refused@{ONE}", f"refused@{OTHER}", f"error@{RPC}"}
    assert tried(known(traffic_of())) - domain == errors
    both = known(traffic_of(), kinds=("error", "refused"))
    assert tried(both) - domain == {*errors, f"refused@{RPC}"}


def test_where_a_proxy_stands_before_it_it_is_the_proxys_answer() -> None:
    named = known(traffic_of(), proxied=("api>http:*:shop/a",))
    assert f"status:503@{ONE}" in tried(named) and f"refused@{OTHER}" in tried(named)
    assert f"refused@{ONE}" not in tried(named)


def test_nature_shows_where_a_proxy_stands_and_has_then_tried_it() -> None:
    shown = known(traffic_of(status="503"))
    assert shown.solver_input.kinds.gone(ONE) == f"status:503@{ONE}"
    assert shown.solver_input.kinds.gone(OTHER) == f"refused@{OTHER}"
    assert not any(fault.endswith(ONE) for fault in tried(shown))
    assert shown.judge([ONE]) == "safe" and shown.judge([OTHER]) == "open"


def test_a_refused_connection_that_nature_has_shown_is_what_an_error_is() -> None:
    shown = known(traffic_of(error_type="ConnectError"))
    assert shown.solver_input.kinds.gone(ONE) == f"refused@{ONE}"
    assert not any(fault.endswith(ONE) for fault in tried(shown))


def test_what_was_learned_of_an_error_before_proves_that_and_nothing_else() -> None:
    # Given a result on record, of a time when an error over HTTP was an answer 503
    fault = frozenset({f"error@{ONE}"})
    relied_on = (f"error@{p}" for p in (OTHER, RPC))
    survived = tolerated(fault, relied_on, POINTS, survived=fault)

    knowledge = known(traffic_of())
    knowledge.learn(ExperimentResult.from_json(survived.to_json()))
    assert f"refused@{ONE}" in tried(knowledge)
    assert knowledge.solver_input.explorer.judge(fault) == "safe"


def test_a_finding_of_before_is_verified_as_it_was_found_and_no_more_is_tried_there() -> None:
    fault = f"error@{ONE}"
    knowledge = known(traffic_of())
    knowledge.learn(ExperimentResult(frozenset({fault}), succeeded=False, fired=frozenset({fault})))

    assert knowledge.expand({fault}) == (Fault(ONE, "error"),)
    assert [faults for faults, _ in knowledge.findings()] == [frozenset({fault})]
    assert not any(each.endswith(ONE) for each in tried(knowledge))
    bounds = knowledge.certificate()["certificate"]["axioms"]["bounds"]
    assert [f"refused@{ONE}"] in [each["faults"] for each in bounds["presumed"]]


@pytest.mark.parametrize(
    ("system", "fired", "injected"),
    [
        ("down@shop", {f"error@{ONE}", f"error@{OTHER}"}, {f"error@{ONE}", f"error@{OTHER}"}),
        ("down@shop", {f"refused@{ONE}"}, {"down@shop"}),  # one that is down now is that
        ("down@db", {f"error@{RPC}"}, {"down@db"}),
    ],
)
def test_a_system_that_was_down_before_was_one_of_which_each_point_had_an_error(
    system: str, fired: set[str], injected: set[str]
) -> None:
    result = tolerated(frozenset({system}), (), fired=frozenset(fired))
    assert ExperimentResult.from_json(result.to_json()).injected == injected


@pytest.mark.parametrize(
    ("given", "proxied", "injected"),
    [
        (f"error@{ONE}", [], f"refused@{ONE}"),
        (f"error@{ONE}", ["api>http:*:shop/*"], f"status:503@{ONE}"),
        (f"error@{RPC}", [], f"error@{RPC}"),
        (f"status:500@{ONE}", [], f"status:500@{ONE}"),
        ("down@shop", [], "down@shop"),
    ],
)
def test_an_experiment_says_what_it_injects(given: str, proxied: list[str], injected: str) -> None:
    document = {"request_class": "GET /", "hypothesis": [given], "proxied": proxied}
    asked = NewExperiment.model_validate(document)
    (hypothesis,) = asked.definition().hypotheses
    assert hypothesis == {injected}


def test_what_nature_has_shown_at_a_point_is_tried_there_without_being_asked() -> None:
    # Given that pairs are tried, and that one point was seen to answer 500 without harm
    knowledge = known(traffic_of(status="500"), max_size=2, kinds=("error",))
    kinds, explorer = knowledge.solver_input.kinds, knowledge.solver_input.explorer
    assert set(kinds.of(ONE)) == {"refused", "status:500"}
    assert kinds.of(OTHER) == ("refused",)
    # Then it is proved by itself, and tried together with others
    assert {f"status:500@{ONE}"} not in [{*map(str, each)} for each in explorer.open_hypotheses()]
    assert explorer.judge({f"status:500@{ONE}"}) == "safe"
    assert explorer.judge({f"status:500@{ONE}", f"refused@{OTHER}"}) == "open"


def test_what_nature_shows_is_told_the_commonest_first() -> None:
    seen = [
        (frozenset({f"status:500@{ONE}"}), 3),
        (frozenset({f"reset@{ONE}", f"grpc:13@{RPC}"}), 5),
        (frozenset({f"status:404@{ONE}", f"failed@{OTHER}", f"sql:lost@{OTHER}"}), 1),
    ]
    assert shown_often(seen) == {ONE: ("reset", "status:500", "status:404")}
