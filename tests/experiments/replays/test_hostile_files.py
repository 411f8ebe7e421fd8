"""Files that somebody wrote to make us fail: they are refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldfi.experiments.cli.settings import pairs
from ldfi.experiments.elsewhere.assertions import AnswerAssertion
from ldfi.experiments.errors import InvalidReplay
from ldfi.experiments.replays.measurement import read_measurement
from ldfi.experiments.replays.sources import record

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


def test_what_is_typed_is_text_where_it_is_no_json() -> None:
    assert pairs([f"name={DEEP}"]) == {"name": DEEP}
    assert not AnswerAssertion.parse(f"json.items=={DEEP}").holds(200, b"{}")
    assert not AnswerAssertion.parse("json.items==1").holds(200, DEEP.encode())
