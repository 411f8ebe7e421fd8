"""Issues for trackers: what they say, and that no name in them does anything."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.analysis.repairs.advice import advise
from ldfi.analysis.repairs.issue import TRACKERS, Subject, Tracker, issue
from ldfi.analysis.repairs.owners import Owners
from tests.analysis.repairs.runs import call, runs

COUNTS = {
    "treatment": {"devices": 4, "failures": 4},
    "control": {"devices": 9, "failures": 0},
}


def subject(point: str, request_class: str = "GET /locks", code: str = "") -> Subject:
    faults = [f"refused@{point}"]
    seen = runs([call(point, failed=True, fired="refused", code=code)])
    what = advise(request_class, faults, "open", COUNTS, seen, {}, Owners.parse("pump @pumps"))
    url, command = "https://ldfi.example/f/1", "ldfi reproduce 5abc318a9a03"
    return Subject("5abc318a9a03", faults, "open", url, COUNTS, {}, what, 1e9, 0.25, command)


def test_it_says_what_hurts_what_would_mend_it_and_how_to_see_it() -> None:
    written = issue(subject("pump>http:GET:tank/levels/*", code="pump.py:41 (fill)"), "github")
    assert written.title == "GET /locks is lost when tank does not answer [5abc318a9a03]"
    for part in (
        "All 4 devices that met these failures did not get what they asked for",
        "`refused@pump>http:GET:tank/levels/*`",
        "### What would mend it\n\n- Have pump cope without tank",
        "It is called at `pump.py:41 (fill)`.",
        "```sh\nldfi reproduce 5abc318a9a03\n",
        "- Owner: @pumps\n- Share of traffic: 25 % of all requests\n",
        "- First seen: 2001-09-09 01:46 UTC\n",
        "- Finding `5abc318a9a03`, open: https://ldfi.example/f/1\n",
    ):
        assert part in written.body, part


def test_jira_has_markup_of_its_own() -> None:
    body = issue(subject("pump>http:GET:tank/levels/*"), "jira").body
    assert "h3. What would mend it" in body
    assert "{noformat}\nldfi reproduce 5abc318a9a03" in body
    assert "`" not in body


APART = "\u2060"


@pytest.mark.parametrize(
    ("tracker", "name", "written"),
    [
        ("github", "@torvalds", f"@{APART}torvalds"),
        ("gitlab", "@torvalds", f"@{APART}torvalds"),
        ("jira", "@torvalds", f"@{APART}torvalds"),
        ("github", "#1", f"\\#{APART}1"),
        ("gitlab", "!12 ~bug", f"\\!{APART}12 \\~{APART}bug"),
        ("github", "[x](https://e.vil)", f"\\[x\\](https://{APART}e.vil)"),
        ("github", "<img src=x> &#64;ann", f"\\<img src=x\\> \\&\\#{APART}64;ann"),
        ("gitlab", "`code` *b* www.e.vil", f"\\`code\\` \\*{APART}b\\*{APART} www.{APART}e.vil"),
        ("jira", "{code} [x|https://e.vil]", f"\\{{code\\}} \\[x\\|https://{APART}e.vil\\]"),
        ("jira", "!http://e.vil/x.png!", f"\\!http://{APART}e.vil/x.png\\!"),
    ],
)
def test_no_name_calls_somebody_or_begins_markup(tracker: Tracker, name: str, written: str) -> None:
    body = issue(subject("pump>http:GET:tank/x", f"GET /{name}"), tracker).body
    assert body.startswith(f"GET /{written} is lost")


def test_a_title_calls_nobody() -> None:
    title = issue(subject("pump>http:GET:tank/x", "GET /@ann #1"), "github").title
    assert title.startswith(f"GET /@{APART}ann #{APART}1 is lost")


@given(
    st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])), st.sampled_from(TRACKERS)
)
def test_whatever_a_name_is_no_line_is_a_command_and_no_code_ends_early(
    name: str, tracker: Tracker
) -> None:
    body = issue(subject("pump>http:GET:tank/x", f"GET /{name}", code=name), tracker).body
    for line in body.splitlines():
        assert not line.startswith("/")  # GitLab would obey it
    if tracker != "jira" and name.strip():
        fence = max((len(each) for each in re.findall("`+", name)), default=0) + 1
        assert "It is called at " + "`" * fence in body


@pytest.mark.parametrize("tracker", TRACKERS)
def test_a_title_is_never_longer_than_trackers_take(tracker: Tracker) -> None:
    long = subject("pump>http:GET:tank/x", request_class=f"GET /{'@x' * 2_000}")
    title = issue(long, tracker).title
    assert len(title) <= 255
    assert title.endswith("… [5abc318a9a03]")
