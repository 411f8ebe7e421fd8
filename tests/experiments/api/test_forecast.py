"""A campaign that could not decide anything says so before it starts."""

from __future__ import annotations

import time
from io import StringIO
from typing import Any

import httpx
from fastapi import FastAPI
from rich.console import Console

from ldfi.cli.campaign_view import forecast_shown
from ldfi.experiments.scheduler.engine import Engine
from tests.experiments.domain.traffic.test_catalogue import request
from tests.kit.service import problem

CAMPAIGNS = "/api/v1/campaigns"


def traffic(app: FastAPI, minutes: int, per_minute: int) -> None:
    """So many minutes of traffic, up to now."""
    engine: Engine = app.state.engine
    first = time.time() - 60 * minutes
    for number in range(minutes * per_minute):
        engine.catalogue.observe(request("ab"), first + 60 * number / per_minute)


def screen(forecast: dict[str, Any]) -> str:
    """What the command line shows of a forecast."""
    console = Console(width=200, record=True, file=StringIO())
    console.print(forecast_shown(forecast))
    return console.export_text()


def test_too_little_traffic_is_refused_with_the_figures(app: FastAPI, client: httpx.Client) -> None:
    traffic(app, minutes=20, per_minute=18)
    refused = client.post(CAMPAIGNS, json={"classes": ["GET /t"]})
    assert problem(refused) == "cannot-decide"
    said = refused.json()["detail"]
    assert "GET /t: 1" in said
    assert "requests a minute" in said
    assert "What would do for GET /t: shares of 0.4 and a window of" in said
    assert not client.get(CAMPAIGNS).json()["items"]
    # And so is a single experiment
    tried = {"request_class": "GET /t", "hypothesis": ["error@a"]}
    assert problem(client.post("/api/v1/experiments", json=tried)) == "cannot-decide"
    # But for what would do, and where nobody knows what traffic there will be
    for ways in ({"profile": "staging"}, {"schedule": {"cron": "0 3 * * *"}}, {"classes": ["x"]}):
        assert client.post(CAMPAIGNS, json=ways).status_code == 201


def test_a_profile_chooses_bounds_by_the_traffic(app: FastAPI, client: httpx.Client) -> None:
    traffic(app, minutes=20, per_minute=20)
    asked = {"profile": "production"}
    assert problem(client.post(CAMPAIGNS, json=asked)) == "cannot-decide"
    staging = client.post(CAMPAIGNS, json={"profile": "staging", "control": 0.25}).json()
    chosen = staging["definition"]["settings"]
    assert (chosen["profile"], chosen["treatment"], chosen["control"]) == ("staging", 0.4, 0.25)
    assert chosen["window"] >= 25
    assert chosen["max_union"] is None


def test_production_waits_for_traffic_to_choose_by(client: httpx.Client) -> None:
    refused = client.post(CAMPAIGNS, json={"profile": "production"})
    assert problem(refused) == "cannot-decide"
    assert "seen for long enough" in refused.json()["detail"]


def test_a_forecast_starts_nothing(app: FastAPI, client: httpx.Client) -> None:
    traffic(app, minutes=20, per_minute=18)
    forecast = client.post("/api/v1/forecast", json={}).raise_for_status().json()
    (known,) = forecast["classes"]
    assert (known["request_class"], known["decides"]) == ("GET /t", "nothing")
    assert 12 < known["per_minute"] < 20
    assert known["words"] in forecast["why_not"]
    assert not client.get(CAMPAIGNS).json()["items"]
    shown = screen(forecast)
    assert "1.0 % treated, 10 % in control, 120 s for each experiment." in shown
    assert "cannot decide anything" in shown
    assert "It would not start: no class can decide" in shown


def test_a_rare_point_is_forecast_by_its_requests(app: FastAPI, client: httpx.Client) -> None:
    engine: Engine = app.state.engine
    first = time.time() - 1_200
    for number in range(2_400):
        engine.catalogue.observe(request("a" if number % 4 else "ab"), first + number / 2)
    forecast = client.post("/api/v1/forecast", json={"treatment": 0.2}).raise_for_status().json()
    (known,) = forecast["classes"]
    rarest = known["rarest"]
    assert 0.2 < rarest["share"] < 0.3
    assert rarest["seconds"] > 3 * known["seconds"]
    assert "at the point that 25 % of them call" in screen(forecast)


def test_a_class_seen_for_a_moment_says_nothing(app: FastAPI, client: httpx.Client) -> None:
    engine: Engine = app.state.engine
    for _ in range(30):
        engine.catalogue.observe(request("ab"), time.time() - 5)
    assert client.post(CAMPAIGNS, json={}).status_code == 201


def test_a_delay_that_outlives_its_context_is_refused_or_shortened(client: httpx.Client) -> None:
    refused = client.post(CAMPAIGNS, json={"delay": 20})
    assert problem(refused) == "invalid"
    assert "under a lease of 10 s a failure context holds for 4.7 s" in refused.json()["detail"]
    assert problem(client.post(CAMPAIGNS, json={"settle": 0.1})) == "invalid"
    for fits in ({}, {"delay": 10.0}):  # a form sends its defaults as well
        made = client.post(CAMPAIGNS, json=fits).json()["definition"]["settings"]
        assert (made["delay"], made["settle"]) == (4.6, 5.0)
    drawn = client.post(CAMPAIGNS, json={"kinds": ["delay:0.5..8"]})
    assert drawn.status_code == 422
    assert "of up to 8 s, and delay is 4.6 s, the longest that a call is held up" in drawn.text
    assert client.post(CAMPAIGNS, json={"kinds": ["delay:0.5..4.6"]}).status_code == 201
    only = client.post(CAMPAIGNS, json={"kinds": ["error"], "delay": 20, "settle": 1}).json()
    assert only["definition"]["settings"]["delay"] == 20
