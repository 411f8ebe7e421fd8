"""How people call requests: what stands in the file, what does not, and what is wrong there."""

from __future__ import annotations

from typing import Any

import pytest

from ldfi.analysis.repairs.advice import sentence
from ldfi.analysis.repairs.request_names import BY_THEIR_NAMES, Called
from ldfi.cli.init import NAMES_TEXT
from ldfi.experiments.domain.campaign.lifecycle import FindingState

LOCKS = Called.parse(
    """
    ["PUT /locks/*"]
    name = "Locks"
    lost = "no ship gets in"
    ["GET /tides"]
    name = "Tides"
    """
)
TANK = "error@pump>http:PUT:tank/levels"


def arms(treated: int, hurt: int) -> dict[str, Any]:
    return {"treatment": {"devices": treated, "failures": hurt}}


@pytest.mark.parametrize(
    ("name", "counts", "state", "said"),
    [
        ("PUT /locks/*", arms(4, 4), "open", "When tank fails, no ship gets in"),
        ("PUT /locks/*", arms(4, 1), "open", "Locks fails more often when tank fails"),
        ("PUT /locks/*", {}, "open", "Locks is hurt when tank fails"),
        ("PUT /locks/*", arms(4, 4), "fixed", "Locks was lost when tank fails"),
        ("PUT /locks/*", arms(4, 4), "suspected", "Locks may be lost when tank fails"),
        ("GET /tides", arms(4, 4), "open", "Tides is lost when tank fails"),
        ("GET /other", arms(4, 4), "open", "GET /other is lost when tank fails"),
    ],
)
def test_a_loss_is_said_as_people_do_only_where_all_is_lost(
    name: str, counts: dict[str, Any], state: FindingState, said: str
) -> None:
    assert sentence(name, [TANK], state, counts, {}, LOCKS) == said


def test_what_is_not_in_the_file_goes_by_its_own_name() -> None:
    assert LOCKS.name("GET /other") == BY_THEIR_NAMES.name("GET /other") == "GET /other"
    assert (LOCKS.lost("GET /tides"), LOCKS.lost("GET /x")) == ("Tides is lost", "GET /x is lost")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name = 'x'", "a table is needed"),
        ("['GET /a']\nnaem = 'x'", "only name and lost are known"),
        ("['GET /a']\nname = 3", "3 is not a line of 1 to 200"),
        ("['GET /a']\nname = ''", "is not a line"),
        ('["GET /a"]\nlost = "one\\ntwo"', "is not a line"),
        (f"['GET /a']\nlost = '{'x' * 201}'", "is not a line"),
        ('["GET /a"]\nname =\n', "line 2"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Called.parse(text)


def test_what_init_writes_says_nothing_until_somebody_does() -> None:
    assert Called.parse(NAMES_TEXT) == BY_THEIR_NAMES
    head, _, example = NAMES_TEXT.partition("#\n")
    assert Called.parse(example.replace("# ", "")).lost("GET /play/*") == "nobody can press play"
    assert "LDFI_NAMES_FILE" in head
