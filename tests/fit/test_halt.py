"""An edge that is halted by itself stamps nothing, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldfi.fit.edge import HALT_LOOK_SECONDS, Edge, LocalHalt
from ldfi.fit.runtime import Runtime, activate
from tests.fit.applications import KEYS
from tests.fit.edges import Held, a_rule


def test_a_file_halts_and_its_going_ends_it(tmp_path: Path) -> None:
    now, file = [0.0], tmp_path / "halt"
    halt = LocalHalt({"FIT_HALT_FILE": str(file)}, lambda: now[0])
    assert not halt.holds()
    file.touch()
    assert not halt.holds(), "it is looked for now and then"
    now[0] += HALT_LOOK_SECONDS
    assert halt.holds()
    file.unlink()
    now[0] += HALT_LOOK_SECONDS
    assert not halt.holds()


def test_a_link_that_leads_nowhere_halts_as_well(tmp_path: Path) -> None:
    (tmp_path / "halt").symlink_to(tmp_path / "nothing")
    assert LocalHalt({"FIT_HALT_FILE": str(tmp_path / "halt")}).holds()


@pytest.mark.parametrize(("given", "halted"), [({"FIT_HALT": "1"}, True), ({}, False)])
def test_the_variable_halts_for_good(given: dict[str, str], halted: bool) -> None:
    assert LocalHalt(given).holds() is halted


def test_a_halted_edge_only_passes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIT_HALT_FILE", str(tmp_path / "halt"))
    activate(Runtime("api", KEYS))
    try:
        edge = Edge(Held(a_rule()))
        asked = {"method": "GET", "path": "/boot"}
        assert "fit=" in edge.baggage_onward("user=u1", "d1", lambda: asked)
        (tmp_path / "halt").touch()
        halted = Edge(Held(a_rule()))
        assert halted.baggage_onward("user=u1", "d1", lambda: asked) == "user=u1"
    finally:
        activate(None)
