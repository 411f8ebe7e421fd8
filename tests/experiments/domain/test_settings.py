"""Settings of a campaign: declared once, checked wherever they come from, read from old records."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.declared_settings import About, Setting, settings_of
from ldfi.experiments.domain.settings import SETTINGS, PromqlOutcome, Settings, StrategyName
from ldfi.solver.explorer import STRATEGIES

NUMBERS = [each for each in SETTINGS.values() if each.about.limits]


def test_what_is_written_is_read_as_the_same() -> None:
    asked = Settings(kinds=("delay",), delta=0.1, promql=PromqlOutcome("bad", "all"))
    assert Settings.from_json(asked.to_json()) == asked
    assert Settings.from_json({}) == Settings()


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda each: each.name)
def test_every_setting_is_told_in_full(setting: Setting) -> None:
    about = setting.about
    assert about.described[0].isupper() and about.described.endswith(".")
    assert ".." not in about.described
    assert setting.optional == bool(about.none), "what None means is said, and only where it may be"
    bounded = about.limits or setting.choices or about.reads is not None
    assert bounded or setting.one in {bool, PromqlOutcome}
    setting.check(setting.default)


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda each: each.name)
@given(data=st.data())
def test_a_number_out_of_bounds_is_refused_with_them(setting: Setting, data: st.DataObject) -> None:
    limits = setting.about.limits
    value = data.draw(st.floats() if setting.one is float else st.integers())
    within = (
        value >= limits.get("ge", -math.inf)
        and value <= limits.get("le", math.inf)
        and ("gt" not in limits or value > limits["gt"])
        and ("lt" not in limits or value < limits["lt"])
    )
    if within:
        assert getattr(Settings(**{setting.name: value}), setting.name) == value  # type: ignore[arg-type]
        return
    with pytest.raises(ValueError, match=f"{setting.name} is .*must be") as refused:
        Settings(**{setting.name: value})  # type: ignore[arg-type]
    assert all(str(limit) in str(refused.value) for limit in limits.values())


def test_any_kind_of_fault_can_be_asked_for_once() -> None:
    kinds = ("refused", "status:500", "exception:KeyError")
    assert Settings.from_json(Settings(kinds=kinds).to_json()).kinds == kinds
    with pytest.raises(ValueError, match="a status from 400 to 599"):
        Settings(kinds=("status:200",))
    with pytest.raises(ValueError, match="twice"):
        Settings(kinds=("refused", "refused"))


@pytest.mark.parametrize("wrong", [{"kinds": ()}, {"kinds": ("fire",)}, {"on_drift": "hope"}])
def test_a_word_that_is_no_choice_is_refused_with_the_choices(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name} is ") as refused:
        Settings(**wrong)
    assert repr(value) in str(refused.value)
    assert all(choice in str(refused.value) for choice in SETTINGS[name].choices)


def test_every_strategy_that_can_be_chosen_is_one_the_solver_has() -> None:
    assert set(SETTINGS["strategy"].choices) == set(STRATEGIES)
    assert SETTINGS["strategy"].one is StrategyName


def test_a_declaration_says_what_a_type_is_made_of() -> None:
    @dataclass
    class Declared:
        few: Annotated[tuple[StrategyName, ...], About("Few")] = ("union",)
        most: Annotated[int | None, About("Most", none="no end", unit="seconds")] = None

    few, most = settings_of(Declared).values()
    assert (few.many, few.optional, few.one) == (True, False, StrategyName)
    assert few.choices == ("smallest", "likeliest", "union")
    assert (most.many, most.optional, most.one, most.choices) == (False, True, int, ())
    assert most.about.described == "Most, in seconds; null: no end."


def test_whoever_only_wants_help_does_not_wait_for_pydantic() -> None:
    program = "import sys, ldfi.experiments.domain.settings; print('pydantic' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert said.stdout.strip() == b"False"
