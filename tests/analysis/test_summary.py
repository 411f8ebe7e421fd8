"""What a person reads first: the worst, what it rests on, and nothing that is not known."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ldfi.analysis.analysis import analyze
from ldfi.analysis.hints import Hint
from ldfi.analysis.names import Names, means
from ldfi.analysis.narrative import red_items
from ldfi.analysis.render import render
from ldfi.analysis.report import Analysis
from tests.analysis.spans import Made, analysed, asked, entered

DATA = Path(__file__).parents[1] / "data"
HOSTS = ("ads", "basket", "cards", "deals")
NOBODY = Names({}, {}, {}, frozenset())


def of(*names: str) -> Analysis:
    return analyze([DATA / name for name in names])


def said(analysis: Analysis, width: int) -> list[str]:
    out = io.StringIO()
    render(analysis, Console(file=out, width=width))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 200])
def test_the_first_ten_lines_name_the_hidden_failure(width: int) -> None:
    # Given requests answered 200 with the body null after route had failed
    first = said(of("hotrod-faults.otlp.jsonl.gz", "hotrod-faults.outcomes.jsonl"), width)[:10]
    # Then the first lines say so, in names of services
    text = " ".join(" ".join(first).split())
    assert "were lost when route failed" in first[0]
    assert "lost with route, and the root span says all was well" in text
    assert "127.0.0.1" not in text


@pytest.mark.parametrize("width", [80, 200])
def test_the_first_ten_lines_name_the_fallback_and_the_refusals(width: int) -> None:
    # Given that owners are shown without their visits, and that an answer 405 hides that vets fell
    first = said(of("petclinic-faults.zipkin.jsonl.gz", "petclinic-faults.outcomes.jsonl"), width)
    text = " ".join(" ".join(first[:10]).split())
    assert "visits-service fails:" in text
    assert "of GET /api/gateway/owners/* went well all the same" in text
    assert "were refused (4xx) after vets-service had failed" in text


@pytest.mark.parametrize(
    "name", ["hotrod-faults.otlp.jsonl.gz", "petclinic-faults.zipkin.jsonl.gz"]
)
def test_without_outcomes_nothing_is_called_harmless(name: str) -> None:
    analysis = of(name)
    text = "\n".join(said(analysis, 200))
    assert analysis.gist.harmless == ()
    assert "Outcomes are missing" in analysis.gist.missing
    assert analysis.gist.missing in text
    assert "went well" not in text.replace("in what went well", "")
    assert text.count("harmless") == 1  # where it says that none is called so


def test_of_requests_without_outcome_none_is_called_harmless(tmp_path: Path) -> None:
    # Given five requests that got by without ads, the outcomes of two of which are known
    requests = [[entered("/home"), asked("ads", failed=True)] for _ in range(5)]
    summary = analysed(tmp_path, requests, [True, True]).gist
    assert [proved.requests for proved in summary.harmless] == [2]
    assert "missing of 3 of 5" in summary.missing


def test_what_also_lost_requests_is_not_called_harmless(tmp_path: Path) -> None:
    requests = [[entered("/home"), asked("ads", failed=True)] for _ in range(5)]
    requests += [[entered("/home", failed=True), asked("ads", failed=True)]]
    summary = analysed(tmp_path, requests, [True] * 5 + [False]).gist
    assert summary.harmless == ()
    assert [(each.service, each.seen) for each in summary.lost] == [("ads", 1)]


def test_what_stood_in_is_named(tmp_path: Path) -> None:
    usual = [[entered("/home"), asked("deals")] for _ in range(20)]
    spare = [[entered("/home"), asked("deals", failed=True), asked("ads", 3, 4)]]
    (proved,) = analysed(tmp_path, usual + spare, [True] * 21).gist.harmless
    assert proved.instead == ("ads",)
    assert proved.says == "deals fails: 1 request of GET /home went well all the same; ads stood in"


def test_json_says_the_same() -> None:
    analysis = of("hotrod-faults.otlp.jsonl.gz", "hotrod-faults.outcomes.jsonl")
    summary = json.loads(json.dumps(analysis.to_json()))["gist"]
    text = "\n".join(said(analysis, 1000))
    assert summary["headline"] in text
    assert summary["lead"] in text
    assert all(each["says"] in text for kind in ("masked", "harmless") for each in summary[kind])
    assert all(each["says"] in text for each in summary["classes"])
    assert {"seen", "suspected", "points", "service"} <= summary["lost"][0].keys()
    assert all(reason in text for each in summary["red"] for reason in each["reasons"])


def request(*calls: str, lost: bool = False) -> list[Made]:
    """A request that asks one after the other; ``name!`` fails."""
    steps = enumerate(calls)
    made = [asked(c.rstrip("!"), 10 * i, 10 * i + 5, failed=c[-1] == "!") for i, c in steps]
    return [entered("/order", failed=lost), *made]


def inside(*calls: str, lost: bool = False) -> list[Made]:
    """The same, all of it asked by another service."""
    made = request(*calls, lost=lost)
    hub = Made("api", 0, host="hub", failed=lost, start=0, end=900)
    return [made[0], hub, *(replace(each, within=1) for each in made[1:])]


WELL = [request("pay", "ship", "mail")] * 20
LOST = {"lost": True}
FALLOUT = request("pay!", "mail!", **LOST)


@pytest.mark.parametrize(
    ("requests", "service", "lost"),
    [
        # The mail, always sent, also fails in requests that went well
        (
            [*WELL, *[request("pay", "mail!")] * 5, *[request("pay!", "mail!", **LOST)] * 3],
            "pay",
            3,
        ),
        # A tracker that is only called now and then
        (
            [*WELL, *[request("pay", "cart!")] * 6, *[request("pay!", "cart!", **LOST)] * 4],
            "pay",
            4,
        ),
        # Nothing is known but this request: the first that failed, whatever the names
        ([FALLOUT], "pay", 1),
        ([request("zeta!", "alpha!", **LOST)], "zeta", 1),
        ([request("alpha!", "zeta!", **LOST)], "alpha", 1),
        # One before, that the request got over; one beside, that good requests got over
        ([request("ads!", "cart", "pay!", **LOST)], "pay", 1),
        ([*WELL, *[request("ads!", *"abc")] * 3, request("ads!", "pay!", **LOST)], "pay", 1),
        # A compensation that fails too, and one that does not
        ([*WELL, *[request("pay!", "undo!", **LOST)] * 2], "pay", 2),
        ([*WELL, request("pay!", "undo", "mail!", **LOST)], "pay", 1),
        # What was tried again with success is not it, what was in vain is
        ([*WELL, request("pay!", "pay", "ship!", "mail!", **LOST)], "ship", 1),
        ([*WELL, request("pay", "ship!", "ship!", "ship!", "mail!", **LOST)], "ship", 1),
        # What comes no more shows where the request was stopped
        ([*WELL, request("geo!", "pay!", "mail!", **LOST)], "pay", 1),
        # The same one service further in
        ([*[inside("pay", "mail!")] * 5, *[inside("pay!", "mail!", **LOST)] * 3], "pay", 3),
        ([*[inside("pay", "ship")] * 9, inside("x!", "pay!", **LOST)], "pay", 1),
    ],
)
def test_fallout_shares_no_blame(
    requests: list[list[Made]], service: str, lost: int, tmp_path: Path
) -> None:
    summary = analysed(tmp_path, requests).gist
    assert (summary.lost[0].service, summary.lost[0].lost) == (service, lost)
    assert (
        f"{service} is suspected" in summary.headline
        or f"when {service} failed" in summary.headline
    )
    assert {each.service for each in summary.lost} <= {service, "undo", "x"}


TEN = [f"route{'!' * bad}" for bad in [True] * 10]
ALTOGETHER = "failed altogether in"
OVER = "the root spans say all was well"


@pytest.mark.parametrize(
    ("requests", "outcomes", "headline"),
    [
        ([*[request("route")] * 4, *[request(*TEN)] * 4], 0, f"route {ALTOGETHER} 4 of 8"),
        ([*[request("route")] * 4, *[request(*TEN)] * 4], 8, f"route {ALTOGETHER} 4 of 8"),
        ([request("a!", "b", "b")], 0, f"a {ALTOGETHER} 1 of 1 request, and {OVER}"),
        ([request("a!", "b", "b")], 1, f"a {ALTOGETHER} 1 of 1 request, and all of them went well"),
        # What failed altogether comes first, then what failed in most requests
        ([*[request("a!", "b")] * 2, request("b!")], 0, f"a {ALTOGETHER} 2 of 3"),
        ([inside("b", "a!"), request("b!", "a")], 0, f"a {ALTOGETHER} 1 of 2"),
        # Another call of the same service succeeded, asked by somebody else
        (
            [
                [
                    *request("a"),
                    Made("x", 1, kind=2, end=4),
                    Made("x", 2, host="c", end=3),
                    asked("c", 60, 61, failed=True),
                ]
            ],
            0,
            f"c failed in 1 of 1 request, and {OVER}",
        ),
        # A retry that succeeded is nothing to speak of; what was lost is worse than any of it
        ([request("a!", "a")], 0, "None of 1 request failed"),
        ([*[request("a!", "b")] * 9, request("b!", lost=True)], 0, "1 of 10 requests were lost"),
    ],
)
def test_what_failed_under_a_root_that_says_all_was_well_is_the_headline(
    requests: list[list[Made]], outcomes: int, headline: str, tmp_path: Path
) -> None:
    summary = analysed(tmp_path, requests, [True] * outcomes if outcomes else None).gist
    assert summary.headline.startswith(headline)
    # And it is told as hidden where nobody wrote down what users saw
    said = [each.says for each in summary.masked if not each.lost]
    assert bool(said) == ("None" not in headline and not outcomes)


Flags = list[bool]
REQUESTS = st.lists(
    st.tuples(st.booleans(), st.lists(st.booleans(), min_size=4, max_size=4)),
    min_size=1,
    max_size=12,
)


def made(failed: bool, calls: Flags) -> list[Made]:
    """A request that asks each host, one after the other; some of them fail."""
    steps = enumerate(zip(HOSTS, calls, strict=True))
    made = [asked(host, 10 * i, 10 * i + 5, failed=bad) for i, (host, bad) in steps]
    return [entered("/home", failed=failed), *made]


@given(REQUESTS)
def test_the_ranking_agrees_with_counting(requests: list[tuple[bool, Flags]]) -> None:
    with TemporaryDirectory() as folder:
        summary = analysed(Path(folder), [made(*each) for each in requests]).gist
    seen, beside, nothing = Counter[str](), Counter[str](), 0
    for lost, calls in requests:
        broken = [host for host, bad in zip(HOSTS, calls, strict=True) if bad]
        if lost and len(broken) == 1:
            seen[broken[0]] += 1
        elif lost:
            beside.update(broken)
            nothing += not broken
    assert {each.service: each.seen for each in summary.lost if each.seen} == +seen
    assert all(each.suspected <= beside[each.service] for each in summary.lost)
    assert summary.unexplained == nothing
    assert bool(sum(each.suspected for each in summary.lost)) == bool(beside)
    order = [(each.seen, each.suspected) for each in summary.lost]
    assert order == sorted(order, reverse=True)


@given(REQUESTS)
def test_no_point_is_red_twice(requests: list[tuple[bool, Flags]]) -> None:
    with TemporaryDirectory() as folder:
        summary = analysed(Path(folder), [made(*each) for each in requests]).gist
    points = [point for each in summary.red for point in each.points]
    assert len(points) == len(set(points))
    assert {point for each in summary.lost for point in each.points} <= set(points)


@pytest.mark.parametrize("name", [p.name for p in sorted(DATA.iterdir()) if ".md" not in p.name])
def test_no_point_of_real_traces_is_red_twice(name: str) -> None:
    points = [point for each in of(name).gist.red for point in each.points]
    assert len(points) == len(set(points))


@given(st.lists(st.sets(st.sampled_from("abcdef"), min_size=1)))
def test_every_clue_is_told_of_each_of_its_points_once(groups: list[set[str]]) -> None:
    hints = [Hint(tuple(sorted(group)), f"reason {i}", "") for i, group in enumerate(groups)]
    items = red_items([], hints, NOBODY)
    points = [point for each in items for point in each.points]
    assert sorted(points) == sorted(set().union(*groups))
    for hint in hints:
        assert [i for i in items if {*i.points} & {*hint.points} and hint.reason in i.reasons]
    for item in items:
        assert len(item.reasons) == len(set(item.reasons))


@pytest.mark.parametrize(
    ("point", "name"),
    [
        ("api>http:GET:ratings/titles/*", "api → ratings: GET /titles/*"),
        ("api>db:SELECT:shop/orders", "api → shop: SELECT orders"),
        ("unknown>http:GET:ratings/", "ratings: GET /"),
        ("api>http:GET:10.0.0.7:80/x", "api → the service at 10.0.0.7:80: GET /x"),
        ("home>function:rank", "home → home's rank"),
        ("anything", "anything"),
    ],
)
def test_points_are_said_as_people_do(point: str, name: str) -> None:
    assert NOBODY.call(point) == name


def test_an_address_of_several_services_is_no_name() -> None:
    # Given a proxy behind whose address two services answered, each its own path
    run = of("petclinic-faults.zipkin.jsonl.gz", "petclinic-faults.outcomes.jsonl").gist
    names = {call.below for call in run.calls if call.above == "api-gateway"}
    # Then the calls that nobody answered are named by their path
    assert names == {"vets-service", "visits-service"}
    both = Names({}, {("p:1", "/a"): "a"}, {}, frozenset({"a", "b"}))
    assert both.service("x>http:GET:p:1/a") == "a"
    assert both.service("x>http:GET:p:1/c") == "p"


def test_a_service_between_two_others_is_no_gap() -> None:
    # Given that what driver asks goes out under the name of its client
    summary = of("hotrod.otlp.jsonl.gz").gist
    pairs = {(call.above, call.below) for call in summary.calls}
    assert {("frontend", "driver"), ("driver", "redis-manual"), ("redis-manual", "redis")} <= pairs
    assert {name for pair in pairs for name in pair} == {each.name for each in summary.services}


def test_told_names_are_those_of_services() -> None:
    names = Names({}, {}, {}, frozenset({"visits-service", "a-1", "a-2"}))
    assert names.told("error@visits#0") == "visits-service"
    assert names.told("error@a") == "a"  # it may be either
    assert means("visits", "visits-service")
    assert not means("visit", "visits-service")
