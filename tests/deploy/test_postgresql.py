"""Which PostgreSQL the trials and the tests run."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.stack.missing import Missing
from deploy.stack.postgresql import CHOSEN, installed

pytestmark = pytest.mark.servers


def test_the_server_that_is_chosen_comes_before_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("postgres", "initdb"):
        (tmp_path / program).touch()
    monkeypatch.setenv(CHOSEN, str(tmp_path))
    assert installed() == tmp_path


def test_no_other_is_taken_where_the_chosen_one_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOSEN, str(tmp_path))
    with pytest.raises(Missing, match=f"{CHOSEN}={tmp_path}"):
        installed()
