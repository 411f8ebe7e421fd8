"""Files that somebody wrote to make us fail: they are refused in words."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from ldfi.cli.settings import pairs
from ldfi.errors import InvalidReplay
from ldfi.explore.external.assertions import AnswerAssertion
from ldfi.scenarios.replays.measurement import read_measurement
from ldfi.scenarios.replays.prepared import prepared
from ldfi.scenarios.replays.recording import RecordedRequest, filled, read_recording
from ldfi.scenarios.replays.sources import record

DEEP = "[" * 200_000


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("har", DEEP),
        ("har", '{"log": {"entries": [1]}}'),
        ("har", '{"log": {"entries": [{"request": "GET /"}]}}'),
        ("har", '{"log": {"entries": [{"request": {"headers": [1], "method": 1, "url": 1}}]}}'),
        ("har", '{"log": {"entries": [{"request": {"postData": "x", "method": 1, "url": 1}}]}}'),
        ("access log", '{"request": ' + DEEP),
        ("access log", '{"request": 1}'),
    ],
)
def test_sources_of_recordings(kind: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "source"
    file.write_text(text)
    with pytest.raises(InvalidReplay, match="source"):
        record(file, kind, ())  # type: ignore[arg-type] # one of the choices


def test_runs(tmp_path: Path) -> None:
    file = tmp_path / "run"
    file.write_text(DEEP)
    with pytest.raises(InvalidReplay, match="run cannot be read"):
        read_measurement(file)


@pytest.mark.parametrize(
    "line",
    [
        DEEP,
        f'{{"path": "/x", "body": {DEEP}',
        f'{{"path": "/x", "query": {{"a": {DEEP}',
        f'{{"path": "/x", "times": {"9" * 5000}}}',
        '{"path": "/x", "query": {"a": "\\ud800"}}',
        '{"path": "x"}',
    ],
)
def test_lines_of_recordings(line: str, tmp_path: Path) -> None:
    file = tmp_path / "recording"
    file.write_text(f'{{"path": "/ok"}}\n{line}\n')
    with pytest.raises(InvalidReplay, match=r"recording, line 2"):
        read_recording(file)


@pytest.mark.parametrize(
    "value",
    [
        DEEP,
        '{"a":' * 20_000,
        "[" * 600 + "]" * 600,
        "[" * 600 + '"*"' + "]" * 600,
        '[{"from":' + "[" * 600 + "]" * 600 + "}]",
        '[{"from":' * 400 + "1" + "}]" * 400,
        f"[{'9' * 5000}]",
    ],
)
@pytest.mark.parametrize("hole", ["*", '["titles","*"]'])
def test_parameters_of_recordings_are_text_where_they_are_no_path(
    value: str, hole: str, tmp_path: Path
) -> None:
    """What is no path of Falcor's has no holes, and is sent as it was."""
    file = tmp_path / "recording"
    line = {"path": "/x", "query": {"path": [value, hole], "q": value}}
    file.write_text(json.dumps(line))
    requests, left_out = prepared(
        read_recording(file), {"path": ["7"], "titles": ["7"]}, unsafe=False
    )
    assert not left_out
    sent = parse_qs(urlsplit(requests[0].target).query)
    filled = '["titles",7]' if hole != "*" else "7"
    assert sent == {"path": [value, filled], "q": [value]}


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("7", 7),
        ("0", 0),
        ("9" * 15, 999_999_999_999_999),
        ("9" * 5000, "9" * 5000),
        ("9" * 16, "9" * 16),
        ("007", "007"),
        ("٣", "٣"),
        ("-1", "-1"),
        ("alice", "alice"),
    ],
)
def test_a_key_is_a_number_where_it_is_read_back_as_it_was_typed(
    typed: str, key: int | str
) -> None:
    each = RecordedRequest(path="/x", query={"path": '["titles","*"]'})
    ((whole, _),), left_out = filled([each], {"titles": [typed]})
    assert not left_out
    assert json.loads(str(whole.query["path"])) == ["titles", key]


def test_what_is_typed_is_text_where_it_is_no_json() -> None:
    assert pairs([f"name={DEEP}"]) == {"name": DEEP}
    assert not AnswerAssertion.parse(f"json.items=={DEEP}").holds(200, b"{}")
    assert not AnswerAssertion.parse("json.items==1").holds(200, DEEP.encode())
