"""YAML that somebody wrote to make us fail: it is refused in words, wherever a file is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ldfi.cli import replay_traffic, settings
from ldfi.errors import Invalid
from ldfi.scenarios import scenario, steady_state
from ldfi.scenarios.document import load

BOMB = "\n".join(
    f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9) if n else 'lol'}]" for n in range(12)
)
HOSTILE = {
    "a date that does not exist": "version: 2026-13-45",
    "a number of many digits": f"version: {'9' * 5_000}",
    "brackets without end": "[" * 3_000,
    "a document that holds itself": "version: &a [*a]",
    "lines that stand for billions": BOMB,
    "a timestamp of nothing": "version: !!timestamp x",
    "half of a character": 'version: "\\ud800"',
    "a key that is none": "? [a, b]\n: c",
    "a tag of Python": "!!python/object/apply:os.system [true]",
    "nothing but text": "text",
    "nothing": "",
}
READERS: dict[str, Callable[[Path], object]] = {
    "scenario": scenario.read,
    "steady state": lambda file: steady_state.assertion_for(file, "/"),
    "settings": settings.read,
    "replay": replay_traffic.read,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("what", HOSTILE)
def test_it_is_refused_in_words(reader: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(HOSTILE[what])
    with pytest.raises((Invalid, typer.BadParameter)) as refused:
        READERS[reader](file)
        raise Invalid("it was read, which is as well")
    assert str(refused.value)


NAMES = st.sampled_from(
    [
        *("version", "id", "title", "request_class", "request", "faults", "expect", "seen"),
        *("lineage", "evidence", "environment", "method", "path", "headers", "body", "name"),
        *("steady-state-hypothesis", "probes", "tolerance", "type", "provider", "url", "status"),
        *("requests", "query", "calendar", "schedule", "max_size", "hypothesis", "calls"),
    ]
)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.dates()
    | st.sampled_from(["GET", "/", "error@a", "[", "*", "jsonpath", "http", 1, 200])
)
SHAPES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(NAMES | st.text(max_size=4) | st.integers(), inner, max_size=6)
    ),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shapes") / "file.yaml"


@pytest.mark.parametrize("reader", READERS)
@given(document=st.dictionaries(NAMES, SHAPES, max_size=8) | st.lists(SHAPES, max_size=3))
def test_no_shape_fails_otherwise(reader: str, document: object, file: Path) -> None:
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    try:
        READERS[reader](file)
    except (Invalid, typer.BadParameter) as refused:
        assert str(refused)


@given(st.text(max_size=200) | st.text("[]{}:-?!&*<0123456789.\n \"'ex~", max_size=60))
def test_no_text_fails_otherwise(text: str) -> None:
    try:
        load(text)
    except yaml.YAMLError:
        return
