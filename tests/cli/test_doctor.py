"""``ldfi doctor`` says what is missing, what to do about it, and what nobody can say."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.cli.probe import SLOW, Probe, of_first, of_second
from ldfi.experiments.domain.traffic.class_traffic import WHY_ASIDE
from ldfi.experiments.queries.diagnosis import (
    ENOUGH,
    FEW,
    Checkup,
    of_classes,
    of_keys,
    of_status,
    of_traces,
)
from ldfi.fit import hosts
from ldfi.testing.live import served
from tests.kit.cli import ldfi
from tests.kit.service import GIVEN, service

STATUS: dict[str, Any] = {
    "spans": 900,
    "outcomes": 100,
    "went_well": 99,
    "edges": 1,
    "halted": None,
    "guardrail": None,
}
KNOWN: dict[str, Any] = {"name": "GET /boot", "unfit": None, "last_seen": 990.0}
DECIDES = {"request_class": "GET /boot", "decides": "both", "words": "GET /boot: plenty"}
FORECAST: dict[str, Any] = {"why_not": None, "classes": [DECIDES]}


def ill(found: Iterable[Checkup]) -> set[str]:
    """What is to be mended. Each of them says how."""
    bad = [each for each in found if each.well is False]
    assert all(each.advice for each in bad)
    return {each.about for each in bad}


def exposition(**fates: int) -> str:
    lines = [f'ldfi_traces_total{{fate="{fate}"}} {count}.0' for fate, count in fates.items()]
    return "\n".join(["# HELP ldfi_traces_total Traces", *lines, "ldfi_halted 0.0", ""])


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({}, set()),
        ({"spans": 0}, {"spans"}),
        ({"went_well": 60}, {"outcomes"}),
        ({"outcomes": 0, "went_well": 0}, set()),  # the root spans may be believed
        ({"edges": 0}, {"edges"}),
        ({"halted": "checkout is slow"}, {"halt"}),
        ({"guardrail": "error_rate < 1"}, {"guardrail"}),
    ],
)
def test_status(change: dict[str, Any], about: set[str]) -> None:
    assert ill(of_status({**STATUS, **change})) == about


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"spans": 0, "grpc_port": 4317}, "nothing arrived by gRPC; port 4317 takes OTLP"),
        ({"spans": 0, "grpc_off": "no grpcio"}, "OTLP over gRPC is off: no grpcio"),
        ({"grpc_port": 4317, "grpc_exports": 7}, "7 exports arrived by gRPC; port 4317"),
        ({"grpc_port": 4317}, None),  # spans come another way
        ({"spans": 0}, None),  # it is set to off, or the service is older
    ],
)
def test_what_came_over_grpc_is_said_where_it_helps(
    change: dict[str, Any], said: str | None
) -> None:
    found = [each for each in of_status({**STATUS, **change}) if each.about == "grpc"]
    assert [each.said for each in found] == ([] if said is None else [said])


@pytest.mark.parametrize("source", ["devices", "root"])
def test_nobody_is_advised_to_set_what_is_set(source: str) -> None:
    silent = {**STATUS, "outcomes": 0, "went_well": 0, "outcomes_from": source}
    (found,) = [each for each in of_status(silent) if each.about == "outcomes"]
    assert found.well is None
    assert ("LDFI_OUTCOMES=root" in found.advice) == (source == "devices")


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
def test_shares_of_traces_are_those_of_the_documentation(
    whole: int, cut: int, rootless: int, late: int
) -> None:
    late = min(late, whole)
    told = exposition(whole=whole, cut=cut, rootless=rootless, late=late, unjoined=7)
    gone, ended = cut + rootless, whole + cut + rootless
    one_in = round(1 / FEW)
    many = one_in * gone > ended or one_in * late > max(1, whole)

    assert ("traces" in ill(of_traces(told, {}))) == (ended >= ENOUGH and many)


def test_what_was_dropped_counts_where_it_is_more_than_a_little() -> None:
    told = exposition(whole=1_000, cut=0, rootless=0, late=0)
    assert ill(of_traces(told, {"trace_without_root": 500})) == {"dropped"}
    assert ill(of_traces(told, {"trace_without_root": 5, "unheard_of": 9_999})) == set()


def test_a_process_that_does_not_lead_knows_nothing_of_traces() -> None:
    assert [each.well for each in of_traces("ldfi_leads 0.0\n", {})] == [None]


@pytest.mark.parametrize(
    ("classes", "forecast", "now", "about"),
    [
        ([KNOWN], FORECAST, 1_000.0, set()),
        ([], FORECAST, 1_000.0, {"classes"}),
        ([KNOWN], FORECAST, 9_000.0, {"classes"}),
        ([{**KNOWN, "unfit": "too different"}], FORECAST, 1_000.0, {"class"}),
        ([KNOWN], {**FORECAST, "why_not": "too little traffic"}, 1_000.0, {"campaign"}),
        (
            [KNOWN],
            {**FORECAST, "classes": [{**DECIDES, "decides": "harm"}]},
            1_000.0,
            {"class"},
        ),
    ],
)
def test_classes(
    classes: list[dict[str, Any]], forecast: dict[str, Any], now: float, about: set[str]
) -> None:
    assert ill(of_classes(classes, forecast, now)) == about


def test_points_without_an_injector_are_named_with_what_to_install() -> None:
    points = {f"api>db:SELECT:shop/{i}": "fit in api" for i in range(7)}
    classes = [KNOWN | {"no_injector": points}, KNOWN]
    (found,) = (
        each for each in of_classes(classes, FORECAST, 1_000.0) if each.about == "injectors"
    )
    assert found.well is None
    assert "api>db:SELECT:shop/0" in found.said
    assert "and 2 more" in found.said
    assert found.advice == "install fit in api"


@pytest.mark.parametrize(
    ("listed", "named"), [(None, "api.stripe.com,eu.stripe.com"), ("*.stripe.com", "")]
)
def test_public_hosts_that_are_called_are_named_with_the_line_to_add(
    listed: str | None, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if listed is not None:
        monkeypatch.setenv(hosts.VARIABLE, listed)
    hosts.forget()
    peers = ("ratings", "10.0.0.1:8080", "::1:8080", "::1", "api.stripe.com", "eu.stripe.com:8443")
    support = [f"shop>http:GET:{peer}/x" for peer in peers]
    classes = [KNOWN | {"support": [*support, "shop>rpc:Get:/p.S", "shop>db:GET:db.example.com"]}]
    found = [each for each in of_classes(classes, FORECAST, 1_000.0) if each.about == "hosts"]
    hosts.forget()
    assert [each.advice.partition("FIT_HOSTS=")[2] for each in found] == ([named] if named else [])
    assert not ill(found)


def test_services_whose_spans_name_no_parents_are_named() -> None:
    lost = KNOWN | {"not_looked_at": {"currency": WHY_ASIDE["parentless"], "x": "late"}}
    found = [e for e in of_classes([lost, KNOWN], FORECAST, 1_000.0) if e.about == "parents"]
    assert [(each.well, each.said) for each in found] == [
        (False, "spans of currency name no parents")
    ]


def test_keys_are_named_and_never_shown() -> None:
    assert of_keys(None).well is None
    assert "k1" in of_keys("k1").said
    assert of_keys(None, "FIT_KEYS is empty").well is False


def test_a_new_service_lacks_nearly_everything(tmp_path: Path) -> None:
    secret = "s" * 20
    with served(service(f"sqlite:///{tmp_path / 'ldfi.sqlite3'}")) as url:

        def asked(token: str, *words: str, keys: str) -> tuple[int, str]:
            done = ldfi("doctor", *words, LDFI_URL=url, LDFI_TOKEN=token, FIT_KEYS=keys)
            assert secret not in done.stdout + done.stderr
            assert "Traceback" not in done.stderr
            return done.returncode, done.stdout

        code, told = asked(GIVEN["viewer"], "--json", keys=f"k7:{secret}")
        found = {each["about"]: each for each in json.loads(told)}
        assert code == 3
        assert [found[name]["well"] for name in ("service", "token", "spans", "edges")] == [
            *(True, True),
            *(False, False),
        ]
        assert "k7" in found["keys"]["said"]
        assert "its role is viewer" in found["token"]["said"]

        for role in ("edge", "ingest", "admin", "operator"):
            code, told = asked(GIVEN[role], keys=f"k7 {secret}")
            assert code == 3
            assert f"mend token: its role is {role}" in told or role in {"admin", "operator"}
            assert "→ " in told
        assert asked("x" * 20, keys="")[0] == 2


SEEN: dict[str, Any] = {
    "calls": [{"call": "api>http:GET:a/", "calls": [{"call": "a>db:SELECT:shop/x"}]}],
    "would_fire": ["error@api>http:GET:a/", "error@a>db:SELECT:shop/x"],
}
CALLED = ["api>http:GET:a/", "a>db:SELECT:shop/x"]


@pytest.mark.parametrize(
    ("probe", "about", "advice"),
    [
        (Probe(None, "connection refused"), {"request"}, "is it up"),
        (Probe(502), {"request", "its trace"}, "OTEL_EXPORTER_OTLP_PROTOCOL"),
        (Probe(200, spans=0), {"its trace"}, "OTEL_EXPORTER_OTLP_PROTOCOL"),
        (Probe(200, spans=40), {"its trace"}, "FIT_KEYS"),
        (Probe(200, seen=SEEN, after=SLOW + 1), {"its trace"}, "OTEL_BSP_SCHEDULE_DELAY"),
        (Probe(200, seen=SEEN, after=0.6), set(), ""),
    ],
)
def test_a_request_says_where_it_is_lost(probe: Probe, about: set[str], advice: str) -> None:
    found = list(of_first("http://shop/", probe))
    assert ill(found) == about
    assert advice in " ".join(each.advice for each in found)


def test_calls_that_nobody_can_make_fail_are_named_with_their_service() -> None:
    (fine,) = of_second(CALLED, Probe(200, seen=SEEN))
    assert fine.well is True

    (some,) = of_second(CALLED, Probe(200, seen={**SEEN, "would_fire": [f"error@{CALLED[0]}"]}))
    assert some.well is None
    assert "1 of 2" in some.said
    assert CALLED[1] in some.said
    assert some.advice.startswith("a: ")

    (none,) = of_second(CALLED, Probe(200, seen={**SEEN, "would_fire": []}))
    assert none.well is False
    assert none.advice.startswith("a, api: ")
    assert [each.well for each in of_second([], Probe(200, seen=SEEN))] == [False]
    gone = of_second(CALLED, Probe(200, seen={"calls": [], "would_fire": []}))
    assert "made to fail" in next(gone).said


def test_without_a_key_nothing_is_sent(tmp_path: Path) -> None:
    with served(service(f"sqlite:///{tmp_path / 'ldfi.sqlite3'}")) as url:
        asked = {"LDFI_URL": url, "LDFI_TOKEN": GIVEN["operator"], "FIT_KEYS": ""}
        done = ldfi("doctor", "--json", "--target", "http://127.0.0.1:1/", **asked)
        found = {each["about"]: each for each in json.loads(done.stdout)}
        assert "no key" in found["request"]["said"]

        done = ldfi("doctor", "--json", "--target", url, **asked | {"FIT_KEYS": f"k7:{'s' * 20}"})
        found = {each["about"]: each for each in json.loads(done.stdout)}
        assert "answers" in found["request"]["said"]
        assert found["its trace"]["well"] is False


def test_injectors_that_report_kinds_only_are_named() -> None:
    older = {"by_kind_only": {"api": ["python/0.2.0", "go/0.2.0"]}}
    (found,) = (each for each in of_status(STATUS | older) if each.about == "injectors")
    assert found.well is None
    assert "python/0.2.0, go/0.2.0 in api" in found.said
    assert found.advice.startswith("update fit there")


@pytest.mark.parametrize(
    ("peers", "named"),
    [
        (["10.0.0.1:7070", "10.0.0.2:7070"], True),
        (["10.0.0.1:7070"], False),
        (["carts", "prices"], False),
        (["carts", "10.0.0.1:7070"], False),
    ],
)
def test_procedures_that_are_named_by_the_addresses_of_replicas_are_named(
    peers: list[str], named: bool
) -> None:
    classes = [KNOWN | {"support": [f"front>rpc:Get:{each}/shop.Cart"]} for each in peers]
    found = [each for each in of_classes(classes, FORECAST, 1_000.0) if each.about == "names"]
    assert [each.well for each in found] == ([False] if named else [])
    assert all("front>rpc:Get:/shop.Cart" in each.said for each in found)
