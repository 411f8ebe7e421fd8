"""The plugin as developers meet it: a session of pytest over the tests in ``cases``.

It runs in this process, but for the tests that set the tracer provider, of which a process has one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ldfi.checker.document import EvidenceFile
from ldfi.checker.outcome import OutcomeRecord
from ldfi.checker.verify import Against, verify
from ldfi.scenarios.scenario import read
from tests.explore.pytest.sessions import CASES, Document, Session

TRACING = CASES / "case_tracing.py"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("one"), f"--ignore={TRACING}", within=True)


@pytest.fixture(scope="module")
def tracing(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("tracing"), asked=[str(TRACING)])


def refused(*hosts: str) -> list[str]:
    return [f"refused@app>http:GET:{host}" for host in hosts]


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("test_pair", [refused("pricecache/*", "pricing/*")]),
        ("test_singles_only", []),
        ("test_protected", []),
        ("test_delays", [["delay@app>http:GET:pricecache/*", "delay@app>http:GET:pricing/*"]]),
        ("test_delays_outlasted", []),
        ("test_fixture", []),
        ("test_parametrized[one]", [refused("one/")]),
        ("test_parametrized[two]", [refused("two/")]),
        ("test_decorated", [["error@app>cache:get:homecache"]]),
        ("test_libraries_that_fake_sockets_find_them_as_they_are", []),
        ("test_anew", [refused("pricecache/*", "pricing/*")]),
        ("test_case", [refused("pricecache/*", "pricing/*")]),
        ("test_asgi", [refused("stock/*")]),
        ("test_traced_asgi", [refused("stock/*")]),
        ("test_asgi_behind_asgi", [refused("shop/page/*"), refused("stock/*")]),
        ("test_testclient", [refused("stock/*")]),
        ("test_wsgi", [refused("stock/*")]),
        ("test_server_in_a_thread", [refused("stock/*")]),
        ("test_threads", [refused("stock/*")]),
        ("test_sub_test_that_needs_it", [refused("needed/")]),
        ("test_sub_test_that_survives", []),
        ("test_async_case", [refused("needed/")]),
        ("test_async_sub_test", [refused("needed/")]),
        ("test_subtests_of_pytest", [refused("needed/")]),
        ("test_charged_once", [["reset@app>http:POST:payments/charges"]]),
    ],
)
def test_weaknesses_are_found_and_nothing_else(
    session: Session, test: str, expected: list[list[str]]
) -> None:
    assert session.found(test) == expected, session.output
    assert session.tests[test]["verdict"] == ("harmful" if expected else "tolerated")
    assert session.outcomes[test] == (["failure"] if expected else [])


@pytest.mark.long
def test_applications_that_trace_themselves(tracing: Session) -> None:
    database = [["error@app>db:SELECT:sqlite"], ["error@app>db:connect:sqlite"]]
    assert {test: tracing.found(test) for test in tracing.tests} == {
        "test_own_spans": [refused("stock/*")],
        "test_spans_not_sampled": [refused("stock/*")],
        "test_sqlalchemy": database,
    }, tracing.output
    assert tracing.outcomes.pop("test_what_the_application_exports_is_its_own") == []
    assert tracing.outcomes == {test: ["failure"] for test in tracing.tests}


def test_a_test_whose_function_is_never_called_is_told(session: Session) -> None:
    assert session.outcomes["test_never_called"] == ["failure"]
    assert "nothing is known of this test" in session.output
    assert "test_never_called" not in session.tests


def test_what_is_easily_lost_to_sight_is_found_or_said(session: Session) -> None:
    """Never *passed*: a needed call that nobody saw would be called safe."""
    needed = {name: test for name, test in session.tests.items() if "test_needed[" in name}
    for name in ("pool", "map", "thread", "timer", "worker"):
        kind = f"test_needed[by_{name if name == 'map' else f'a_{name}'}]"
        assert session.found(kind) == [refused("stock/*")], session.output
        needed.pop(kind)
    assert len(needed) == 8
    for test in needed.values():
        assert test["verdict"] == "inconclusive"
        assert "nothing was tried there" in test["reason"]
    beside = [test["verdict"] for name, test in session.tests.items() if "test_optional[" in name]
    assert beside == ["tolerated"] * 5
    assert session.tests["test_asks_its_server_itself"]["verdict"] == "tolerated"


def test_other_libraries_are_seen_through_their_instrumentation(session: Session) -> None:
    ((fault,),) = session.found("test_requests_over_a_socket")

    assert re.fullmatch(r"refused@app>http:GET:127\.0\.0\.1:\d+/needed", fault)
    assert len(session.tests["test_requests_over_a_socket"]["points"]) == 2


def test_unmarked_tests_run_as_ever(session: Session) -> None:
    assert session.outcomes["test_nothing_is_left_behind"] == []
    assert "test_nothing_is_left_behind" not in session.tests


@pytest.mark.parametrize(
    ("test", "outcome", "verdict", "said"),
    [
        ("test_broken", ["failure"], "broken", "the test fails without any fault"),
        ("test_sub_test_that_always_fails", ["failure"], "broken", "a subtest failed: "),
        ("test_calls_nothing", ["failure"], "inconclusive", "no call was seen that could fail"),
        ("test_skipped", ["skipped"], "inconclusive", ""),
        ("test_expected_to_fail", ["skipped"], "harmful", ""),
        (
            "test_skips_under_faults",
            ["failure"],
            "inconclusive",
            "no run told anything about app>http:GET:a/",
        ),
        ("test_out_of_time", ["failure"], "inconclusive", "open when the time was over"),
        ("test_teardown_that_asks_too_much", [], "tolerated", "teardown failed in 1 runs"),
        ("test_fails_by_chance", [], "tolerated", "failed once, but not again, when"),
        ("test_cached", ["failure"], "inconclusive", "no fault has fired at app>http:GET:a/"),
        (
            "test_nothing_but_its_own_request",
            ["failure"],
            "inconclusive",
            "that request is the test's own, not a dependency",
        ),
        (
            "test_nothing_but_its_own_request_by_httpx",
            ["failure"],
            "inconclusive",
            "start the services with the fixture ldfi_services",
        ),
    ],
)
def test_troubles_are_told_apart(
    session: Session, test: str, outcome: list[str], verdict: str, said: str
) -> None:
    assert session.outcomes[test] == outcome, session.output
    assert session.tests[test]["verdict"] == verdict
    assert said in session.output


@pytest.mark.parametrize("test", ["test_broken_fixture", "test_broken_teardown"])
def test_broken_fixtures_are_errors_as_ever(session: Session, test: str) -> None:
    assert session.outcomes[test] == ["error"]
    assert test not in session.tests


def test_the_failure_tells_what_differed(session: Session) -> None:
    expected = r"""
1\. fails when app>http:GET:pricecache/\* fails \S+ and app>http:GET:pricing/\* fails \S+
   httpx\.ConnectError: \[Errno 111\] Connection refused
     what differs +good run +failing run
     app>http:GET:pricecache/\* +not called +refused injected, failed
     app>http:GET:pricing/\* +ok +refused injected, failed
   scenario: \S*/out/test-pair-[0-9a-f]{12}\.yaml
"""
    assert re.search(expected, session.output)


def test_the_summary_says_how_many_runs_it_took(session: Session) -> None:
    pair = session.tests["test_pair"]

    assert (
        f"test_pair: found 1 in {pair['runs']} runs; trying all of size ≤ 2 takes 6"
        in session.output
    )
    runs = sum(each["runs"] for each in session.tests.values())
    assert re.search(rf"tests explored: found \d+ in {runs} runs; trying all", session.output)


def test_each_finding_is_a_scenario_file(session: Session) -> None:
    (finding,) = session.tests["test_asgi"]["findings"]

    scenario = read(Path(finding["scenario"]))

    assert scenario.faults == refused("stock/*")
    assert scenario.request.target == "/page/*?q=*"
    assert [call.call for call in scenario.lineage.expected] == [
        "app>http:GET:reviews/*",
        "app>http:GET:stock/*",
    ]
    assert [call.fired for call in scenario.lineage.observed] == [[], ["refused"]]


def test_the_evidence_is_there_for_whoever_checks(session: Session) -> None:
    file = session.report.with_suffix(".evidence.json")
    document = EvidenceFile.from_json(json.loads(file.read_text(encoding="utf-8")))
    found = verify(document, Against((), time.time()))

    assert found.false == []
    assert found.runs > len(document.classes) > 0
    for leaf in document.leaves():
        assert isinstance(leaf.record, OutcomeRecord)
        assert 0 < leaf.record.began <= leaf.record.ended <= time.time()
    assert all("evidence" not in each for each in session.tests.values())


def test_the_report_is_there_for_people_too(session: Session) -> None:
    text = session.report.with_suffix(".md").read_text(encoding="utf-8")

    assert "## `case_functions.py::test_pair`" in text
    assert "1. fails when app>http:GET:pricecache/* fails" in text


@pytest.mark.long
@pytest.mark.timeout(300)  # three interpreters
def test_workers_find_the_same_and_report_it_together(
    session: Session, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("many")

    spread = Session(folder, "-n", "2", "-k", "pair or parametrized or anew or single")

    assert len(spread.tests) == 5

    def comparable(found: Session, test: str) -> Document:
        document = {key: value for key, value in found.tests[test].items() if key != "seconds"}
        return json.loads(json.dumps(document).replace(str(found.folder), ""))  # type: ignore[no-any-return]

    for test in spread.tests:
        assert comparable(spread, test) == comparable(session, test)


@pytest.mark.parametrize(
    ("options", "within", "code"),
    [
        ((), True, pytest.ExitCode.USAGE_ERROR),
        pytest.param(("-n1",), False, pytest.ExitCode.TESTS_FAILED, marks=pytest.mark.long),
    ],
)
def test_a_marker_that_cannot_be_read_is_refused_before_anything_runs(
    tmp_path: Path, options: tuple[str, ...], within: bool, code: int
) -> None:
    (tmp_path / "case_bad.py").write_text(
        "import pytest\n@pytest.mark.ldfi(max_size=0)\ndef test_bad(): pass\n"
    )

    session = Session(tmp_path, *options, cases=tmp_path, within=within)

    assert session.code == code
    assert "case_bad.py::test_bad: ldfi: max_size=0 leaves nothing to try" in session.output


@pytest.mark.long
def test_it_imports_nothing_without_need_and_needs_no_more_than_its_extra(tmp_path: Path) -> None:
    """A developer of a service installs neither a database's driver nor a web framework."""
    (tmp_path / "case_light.py").write_text(
        "import sys, pytest\n"
        "def test_before():\n"
        "    used = {'ldfi.solver', 'ldfi.lineage', 'pysat', 'httpx', 'pydantic', 'yaml',"
        " 'opentelemetry.sdk'}\n"
        "    assert used & set(sys.modules) == set()\n"
        "@pytest.mark.ldfi\n"
        "def test_explored():\n"
        "    import httpx\n"
        "    client = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200)))\n"
        "    client.get('http://a/').raise_for_status()\n"
        "def test_light():\n"
        "    heavy = {'sqlalchemy', 'fastapi', 'starlette', 'kafka', 'psycopg', 'sklearn', 'scipy',"
        " 'networkx', 'typer', 'google'}\n"
        "    assert heavy & set(sys.modules) == set()\n"
    )

    session = Session(
        tmp_path,
        *("-p", "ldfi.explore.pytest.plugin"),
        cases=tmp_path,
        OTEL_SDK_DISABLED="true",  # is about what the application exports
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )

    assert session.outcomes == {"test_before": [], "test_explored": ["failure"], "test_light": []}
    assert list(session.report.parent.glob("*.yaml"))


@pytest.mark.long
def test_whoever_marks_no_test_pays_for_nothing() -> None:
    """pytest imports the plugin in every session of whoever has it installed."""
    ours = "'ldfi.fit', 'ldfi.lineage', 'ldfi.solver'"
    used = f"{{{ours}, 'pysat', 'opentelemetry', 'httpx', 'pydantic', 'yaml'}}"
    program = f"import ldfi.explore.pytest.plugin, sys; print({used} & set(sys.modules))"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "set()\n"
