"""What is asked for with a campaign: the API's document and the domain's settings are one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from ldfi.experiments.api.new_campaign import Bounds, NewCampaign, NewExperiment
from ldfi.experiments.domain.declared_settings import Setting
from ldfi.experiments.domain.settings import SETTINGS, PromqlOutcome, Settings

COUNTS = {"failures": "bad", "total": "all"}
EXTREMES = [
    (setting, limit + step)
    for setting in SETTINGS.values()
    for limit in setting.about.limits.values()
    for step in (-1, 0, 1)
]


def asked(**values: Any) -> Bounds:
    return Bounds.model_validate(values)


def test_what_is_not_said_has_the_defaults_of_the_domain() -> None:
    assert asked().settings() == Settings()
    assert NewCampaign.model_validate({}).definition().settings == Settings()
    shown = asked().model_dump()
    assert shown == Settings().to_json()


def test_what_is_said_reaches_the_domain() -> None:
    said: dict[str, Any] = {"delta": 0.5, "min_samples": 3, "max_union": None}
    meant = Settings(kinds=("delay",), promql=PromqlOutcome("bad", "all"), **said)

    assert asked(kinds=["delay"], promql=COUNTS, **said).settings() == meant


def test_what_is_not_said_stays_as_it_was() -> None:
    before = Settings(kinds=("delay",), delta=0.5, promql=PromqlOutcome("bad", "all"))

    assert asked().settings(before) == before
    assert asked(members=7).settings(before) == replace(before, members=7)
    assert asked(promql=None).settings(before).promql is None


def test_an_experiment_has_the_settings_of_a_campaign() -> None:
    document = {"request_class": "GET /", "hypothesis": ["error@a"], "members": 7}
    assert NewExperiment.model_validate(document).definition().settings == Settings(members=7)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda each: each.name)
def test_the_document_describes_each_setting_as_it_was_declared(setting: Setting) -> None:
    described = Bounds.model_json_schema()["properties"][setting.name]
    assert described["description"] == setting.about.described
    default = setting.default
    assert described["default"] == (list(default) if isinstance(default, tuple) else default)


@pytest.mark.parametrize(("setting", "value"), EXTREMES)
def test_the_api_refuses_what_the_domain_refuses(setting: Setting, value: float) -> None:
    try:
        setting.check(value)
    except ValueError:
        with pytest.raises(ValidationError):
            asked(**{setting.name: value})
    else:
        assert getattr(asked(**{setting.name: value}).settings(), setting.name) == value


def test_kinds_of_fault_are_asked_for_by_their_words() -> None:
    assert asked(kinds=["refused", "status:500"]).settings().kinds == ("refused", "status:500")
    assert asked(kinds=["delay:0.5..2"]).settings().kinds == ("delay:0.5..2",)
    assert asked(kinds=["slow:2", "slow:0.5..2"]).settings().kinds == ("slow:2", "slow:0.5..2")
    for wrong in (["explode"], ["slow"], ["status:99"], ["delay:2..0.5"], ["delay:0.50..2"], []):
        with pytest.raises(ValidationError):
            asked(kinds=wrong)


def test_an_experiment_tries_any_kind_that_its_point_can_have() -> None:
    def experiment(*hypothesis: str) -> NewExperiment:
        document = {"request_class": "GET /", "hypothesis": list(hypothesis)}
        return NewExperiment.model_validate(document)

    definition = experiment("status:500@a>http:GET:b/", "down@db").definition()
    assert definition.settings.kinds == ("error", "delay", "status:500")
    drawn = ["delay:0.5..2@a>http:GET:b/", "delay:p50=0.8..p99=3@a>http:GET:c/"]
    definition = experiment(*drawn).definition()
    assert definition.hypotheses == (frozenset(drawn),)
    assert definition.kinds == {"delay:0.5..2", "delay:p50=0.8..p99=3"}
    assert definition.delays
    for wrong in ("redis:loading@a>http:GET:b/", "exploded@a", "error:2@a", "status@a"):
        with pytest.raises(ValidationError):
            experiment(wrong)
