"""What injectors report: the grammar, and what of it is not taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit.protocol.reach import MAX_LENGTH, MAX_REACHES, InjectorReport, PointPattern

VECTORS = Path(__file__).parents[3] / "fit" / "protocol" / "vectors" / "reports.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text())["cases"]

named = st.text("abz09._~*{}$()!,;=@+-:/é库", min_size=1, max_size=20)
reaches = st.builds(
    PointPattern,
    named,
    named,
    st.none() | st.frozensets(st.sampled_from(["delay", "error", "grpc"]), min_size=1),
)
reports = st.builds(
    InjectorReport, st.just("python/0.2.0"), st.lists(reaches, max_size=9).map(tuple)
)


@pytest.mark.parametrize("case", CASES, ids=[case["text"][:40] or "empty" for case in CASES])
def test_a_vector_is_read_as_it_says(case: dict[str, Any]) -> None:
    if case["read"] is None:
        with pytest.raises(ValueError, match=r"not? "):
            InjectorReport.parse(case["text"])
        return
    read = InjectorReport.parse(case["text"])
    assert read.injector == case["read"]["injector"]
    assert [
        {
            "caller": each.caller,
            "rest": each.rest,
            "kinds": None if each.kinds is None else sorted(each.kinds),
        }
        for each in read.reaches
    ] == case["read"]["reaches"]
    assert str(read) == case["text"]


@given(reports)
def test_what_is_written_is_read_back(report: InjectorReport) -> None:
    assert InjectorReport.parse(str(report)) == report


@given(st.text(max_size=60) | st.text("1 ab>:*|,é\n", max_size=60))
def test_anything_is_read_or_refused(text: str) -> None:
    try:
        read = InjectorReport.parse(text)
    except ValueError:
        return
    assert str(read).split(" ")[:2] == text.split(" ")[:2]


def test_a_report_is_bounded() -> None:
    most = " ".join(["1 node", *(f"a>http:{i}" for i in range(MAX_REACHES))])
    assert len(InjectorReport.parse(most).reaches) == MAX_REACHES
    for long in (most + " a>more", "1 node a>" + MAX_LENGTH * "b"):
        with pytest.raises(ValueError, match=r"not? "):
            InjectorReport.parse(long)
