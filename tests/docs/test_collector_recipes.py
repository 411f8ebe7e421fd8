"""The Collector's configurations in the how-tos: whole enough to be typed as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "trace-sources.md"
RECIPES = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_component_of_a_pipeline_is_configured(recipe: str) -> None:
    read = yaml.safe_load(recipe)
    (pipeline,) = read["service"]["pipelines"].values()
    assert set(pipeline["receivers"]) == read["receivers"].keys()
    assert set(pipeline["exporters"]) == read["exporters"].keys()


def test_there_is_one_for_each_vendor() -> None:
    receivers = {name for recipe in RECIPES for name in yaml.safe_load(recipe)["receivers"]}
    assert receivers == {"datadog", "awsxray"}
