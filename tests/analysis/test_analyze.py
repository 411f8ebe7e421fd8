"""``ldfi analyze`` on real traces, and on what is none."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from ldfi.analysis.analysis import analyze
from ldfi.analysis.outcomes import MAX_LINE, Told, read_outcomes
from ldfi.analysis.render import render
from ldfi.analysis.report import Analysis, ClassReport
from ldfi.lineage.readers.files import read_file
from tests.analysis.spans import Made, analysed, asked, entered

DATA = Path(__file__).parents[1] / "data"


def of(*names: str) -> Analysis:
    return analyze([DATA / name for name in names])


def entry(analysis: Analysis, name: str) -> ClassReport:
    return next(each for each in analysis.classes if each.name == name)


def text(analysis: Analysis) -> str:
    out = io.StringIO()
    render(analysis, Console(file=out, width=200))
    return out.getvalue()


def test_the_published_example(tmp_path: Path) -> None:
    # Given the requests over A, R, P, B and PF of "Automating Failure Testing" as OTLP lines
    runs = [("ARPB", ""), ("APB", "R"), ("ABF", "P")]
    lines = [line for i, run in enumerate(runs) for line in [_otlp(f"{i + 1:032x}", *run)]]
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(lines))
    # Then the minimal hypotheses are exactly {A}, {B} and {P, PF}
    (report,) = analyze([path]).classes
    assert report.hypotheses == (
        ("error@api>http:GET:a/",),
        ("error@api>http:GET:b/",),
        ("error@api>http:GET:f/", "error@api>http:GET:p/"),
    )
    survived = {tolerated.faults: tolerated.instead for tolerated in report.tolerated}
    assert survived[("error@api>http:GET:p/",)] == ("api>http:GET:f/",)
    assert survived[("error@api>http:GET:r/",)] == ()


def _otlp(trace: str, good: str, failed: str) -> str:
    def span(
        name: str, parent: str, kind: int, status: int, **attributes: str
    ) -> dict[str, object]:
        listed = [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]
        times = {"startTimeUnixNano": "1", "endTimeUnixNano": "2"}
        ids = {"traceId": trace, "spanId": name, "parentSpanId": parent}
        what = {"name": "x", "kind": kind, "status": {"code": status}, "attributes": listed}
        return {**ids, **times, **what}

    spans = [span("01" * 8, "", 2, 0, **{"http.method": "GET", "http.target": "/home"})]
    for letter in good + failed:
        status, code = (2, "503") if letter in failed else (0, "200")
        url = f"http://{letter}/"
        called = {"http.method": "GET", "http.url": url, "http.status_code": code}
        spans.append(span(letter.encode().hex() * 8, "01" * 8, 3, status, **called))
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "api"}}]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]})


def test_a_200_that_hides_an_error_is_found_where_outcomes_are_known() -> None:
    # Given requests of which some answered 200 with the body null, and how they ended
    analysis = of("hotrod-faults.otlp.jsonl.gz", "hotrod-faults.outcomes.jsonl")
    report = entry(analysis, "GET /dispatch")
    hidden = [failure for failure in report.failures if failure.hidden]
    # Then route is suspected of all of them and nothing else is
    route = "frontend>http:GET:127.0.0.1:38183/route"
    assert hidden
    assert {failure.suspects for failure in hidden} == {(route,)}
    # And the retried look-ups in redis, which fail in nearly every good request, are no suspects
    assert report.retried == ("redis-manual>db:GET:redis/GetDriver",)
    assert "the root span says all was well" in text(analysis)


def test_without_outcomes_it_says_that_a_200_may_hide_an_error() -> None:
    analysis = of("hotrod-faults.otlp.jsonl.gz")
    assert any("200 may hide" in note for note in analysis.notes)
    assert not [f for f in entry(analysis, "GET /dispatch").failures if f.hidden]


def test_a_fallback_is_named_even_where_the_trace_is_cut() -> None:
    # Given traces in which the gateway's calls were not recorded, and what was done to it
    analysis = of("petclinic-faults.zipkin.jsonl.gz", "petclinic-faults.outcomes.jsonl")
    report = entry(analysis, "GET /api/gateway/owners/*")
    # Then visits is known to be tolerated, as told, and customers not
    assert ("error@visits",) in [tolerated.faults for tolerated in report.tolerated]
    assert ("error@customers",) in [failure.told for failure in report.failures]
    assert any("circuit breaker" in note for note in analysis.notes)


def test_what_only_some_requests_call_makes_no_class_unfit() -> None:
    analysis = of("petclinic.otlp.jsonl.gz", "petclinic.outcomes.jsonl")
    report = entry(analysis, "GET /api/gateway/owners/*")
    assert report.consistency < 0.95
    assert report.unfit == ""


def test_a_folder_is_read_whole_and_duplicates_count_once() -> None:
    # Given the same two requests in three formats, among everything else
    analysis = analyze([DATA])
    names = {Path(name).name for name, count in analysis.files.items() if count}
    spans = [s for p in DATA.iterdir() if p.name in names for b in read_file(p) for s in b.spans]
    distinct = {(span.trace_id, *span.identity) for span in spans}
    assert analysis.skipped["duplicate span"] == len(spans) - len(distinct) >= 2 * 77
    assert str(DATA / "README.md") in analysis.unread
    # Then nothing was lost: what was read was used or is accounted for
    assert analysis.spans == sum(analysis.files.values())


@pytest.mark.parametrize(
    "name", [p.name for p in sorted(DATA.iterdir()) if ".outcomes." not in p.name]
)
def test_something_is_said_about_every_file(name: str) -> None:
    analysis = of(name)
    said = text(analysis)
    assert analysis.classes or name in said
    assert json.loads(json.dumps(analysis.to_json()))["spans"] == analysis.spans


def test_json_has_what_was_promised() -> None:
    data = of("petclinic.otlp.jsonl.gz").to_json()
    assert {"spans", "traces", "skipped", "classes"} <= data.keys()
    wanted = {"predicate", "traces", "consistency", "supports", "hypotheses", "tolerated"}
    assert all(wanted <= each.keys() for each in data["classes"])


def test_a_damaged_file_says_how_far_it_was_read(tmp_path: Path) -> None:
    source = DATA / "hotrod-faults.otlp.jsonl.gz"
    cut = tmp_path / "cut.gz"
    cut.write_bytes(source.read_bytes()[:-9000])
    analysis = analyze([cut])
    assert analysis.spans > 100
    assert "damaged" in analysis.unread[str(cut)]


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        analyze([tmp_path / "nowhere.json"])


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    shutil.copy(DATA / "README.md", tmp_path)
    assert "no trace in there" in text(analyze([tmp_path]))


@pytest.mark.parametrize(
    ("line", "success"),
    [
        ({"success": True}, True),
        ({"outcome": "failure"}, False),
        ({"status": 200, "body": "null"}, False),
        ({"status": 200, "body": '{"errors": ["no"]}'}, False),
        ({"status": 200, "body": "<html>"}, True),
        ({"status": 404}, None),
        ({"status": 500}, False),
        ({"status": "?", "fault": [7, {"fault": 503}, None]}, None),
    ],
)
def test_outcomes_are_read_in_several_words(
    line: dict[str, object], success: bool | None, tmp_path: Path
) -> None:
    path = tmp_path / "outcomes.jsonl"
    path.write_text(json.dumps({"trace_id": "1f", **line}))
    assert read_outcomes(path) == {"0" * 30 + "1f": Told(success, frozenset())}


def test_one_line_of_megabytes_is_not_read_as_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "one-line.json"
    path.write_text('{"trace_id": "1f", "success": true, "padding": "' + "x" * MAX_LINE + '"}')
    with pytest.raises(ValueError, match="no outcomes"):
        read_outcomes(path)


def test_people_are_no_classes(tmp_path: Path) -> None:
    # Given requests about people and their orders, whose spans name no route
    def line(number: int) -> str:
        path = f"/users/{_word(number % 40)}/orders/A-{number % 90}"
        attributes = {"http.request.method": "GET", "url.path": path}
        listed = [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]
        span = {"traceId": f"{number + 1:032x}", "spanId": "1" * 16, "name": "GET", "kind": 2}
        times = {"startTimeUnixNano": "1", "endTimeUnixNano": "2"}
        spans = [{"spans": [{**span, **times, "attributes": listed}]}]
        return json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": spans}]})

    (tmp_path / "traces.jsonl").write_text("\n".join(map(line, range(300))))
    (report,) = analyze([tmp_path]).classes
    assert (report.name, report.traces) == ("GET /users/*/orders/*", 300)


def _word(number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in f"{number:04}")


@pytest.mark.parametrize(
    ("begins", "said"),
    [
        ([10] * 6, "6 calls of api at api>http:GET:rates/ ran in traces of their own, each while"),
        ([900] * 6, "each while a request of it runs: perhaps"),
        ([10, 10, 10, 995, 2000, 3000], "own, 3 of them while a request of it runs"),
        ([5000] * 6, "own, 0 of them while"),
    ],
)
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside work of a new root"])
def test_a_loose_call_is_proposed_as_one_of_the_requests_it_runs_within(
    begins: list[int], said: str, inside: bool, tmp_path: Path
) -> None:
    call = Made("api", host="rates")
    loose = [[replace(call, start=start, end=start + 20)] for start in begins]
    if inside:  # the work goes on for longer than its call, and begins sooner
        work = Made("api", kind=1)
        loose = [
            [replace(work, start=each.start - 5, end=each.end + 3000), replace(each, within=0)]
            for [each] in loose
        ]
    analysis = analysed(tmp_path, [*[[entered("/"), asked("a")]] * 6, *loose])
    assert [each.name for each in analysis.classes] == ["GET /"]
    assert any(said in note for note in analysis.notes)


def test_where_nothing_serves_a_call_may_be_where_requests_begin(tmp_path: Path) -> None:
    browser = [Made("browser", host="api", end=90), replace(entered("/"), within=0)]
    analysis = analysed(tmp_path, [browser] * 6)
    assert [each.service for each in analysis.classes] == ["browser"]
