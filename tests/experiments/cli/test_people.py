"""Lists say at a terminal what people call requests, and exact names wherever a program reads."""

from __future__ import annotations

import io
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout

import httpx
import pytest

from ldfi.experiments.cli.main import main
from ldfi.experiments.repairs.called import Called
from ldfi.testing.serving import served
from tests.experiments.applications import GIVEN, service
from tests.experiments.cli.test_lists import CLASS, COLUMNS, LAYOUT, Listed, filled

NAME = "Boot :x: [the home screen]"


class Terminal(io.StringIO):
    """What somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listed]:
    url = f"sqlite:///{tmp_path_factory.mktemp('people') / 'ldfi.sqlite3'}"
    ids = filled(url)
    called = Called({CLASS: NAME, "GET /of-another-team": "Secret"})
    with served(service(url, called=called)) as address:
        yield Listed(address, ids)


def looked_at(at: Listed, *words: str) -> str:
    """What a command shows at a terminal of 60 columns."""
    screen = Terminal()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(screen):
        patch.setattr(sys, "argv", ["ldfi", *words])
        patch.setattr(signal, "signal", lambda *_: None)
        for name, value in {
            "LDFI_URL": at.url,
            "LDFI_TOKEN": GIVEN["viewer"],
            "COLUMNS": str(COLUMNS),
            "LINES": "40",
            "TERM": "dumb",
        }.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code in {0, 1, 3, None}, screen.getvalue()
    return screen.getvalue()


LISTS = [
    ("findings",),
    ("experiment", "list"),
    ("campaign", "show", "{campaign}"),
    ("campaign", "experiments", "{campaign}"),
    ("whatif", "--down", "api>http:GET:playlist*", "--verbose"),
]


@pytest.mark.parametrize("words", [*LISTS, ("classes",)], ids=" ".join)
def test_people_see_what_they_call_it(at: Listed, words: tuple[str, ...]) -> None:
    asked = [word.format(**at.ids) for word in words]
    shown = looked_at(at, *asked)

    assert NAME in shown
    assert (CLASS in shown) is (words == ("classes",))  # there both are, to be typed
    assert max(map(len, shown.splitlines())) <= COLUMNS
    exact = looked_at(at, *asked, "--exact")
    assert CLASS in exact
    assert NAME not in exact
    assert max(map(len, exact.splitlines())) <= COLUMNS


@pytest.mark.parametrize("words", [*LISTS, ("classes",)], ids=" ".join)
def test_programs_see_exact_names(at: Listed, words: tuple[str, ...]) -> None:
    asked = [word.format(**at.ids) for word in words]
    for shown in (at(*asked), looked_at(at, *asked, "--json")):
        assert CLASS in shown
        assert NAME not in shown
    json.loads(at(*asked, "--json"))


def test_points_keep_their_exact_names(at: Listed) -> None:
    assert LAYOUT in looked_at(at, "findings")


def test_nobody_learns_of_classes_that_are_not_theirs(at: Listed) -> None:
    headers = {"Authorization": f"Bearer {GIVEN['viewer']}"}
    answer = httpx.get(f"{at.url}/api/v1/classes/called", headers=headers, trust_env=False)
    assert answer.json() == {CLASS: NAME}
