"""Reads what the engine itself knows of its work: what every face that shows the status says."""

from __future__ import annotations

from typing import Any

from ldfi.experiments.scheduler.engine import Engine


def engine_status(engine: Engine, now: float) -> dict[str, Any]:
    """Return what is stopped or armed, who asks for rules and what has arrived, by the names of
    `GET /status`. It asks no database."""
    state = engine.scheduler.state
    return {
        "halted": state.halted,
        "guardrail": state.breach,
        "armed": engine.board.armed(),
        "edges": engine.board.edges(now),
        "spans": engine.spans,
        "outcomes": engine.outcomes,
        "went_well": engine.went_well,
        "outcomes_from": engine.outcomes_from,
        "dropped": engine.drops(),
        "by_kind_only": state.injectors.by_kind_only(),
        "silent": engine.silent(),
        "bare": engine.bare(),
    }
