"""A finding that hurts others than those who meet it says so, in words and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
from sqlalchemy import select

from ldfi.analysis.repairs.owners import Owners
from ldfi.analysis.repairs.request_names import BY_THEIR_NAMES
from ldfi.dashboards.findings.finding_story import FindingStory, finding_story
from ldfi.dashboards.render import environment
from ldfi.dashboards.work.experiment_story import now_of
from ldfi.experiments.api.experiment_view import ExperimentView
from ldfi.experiments.api.repairs import explained
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.queries.wording import outcome_in_a_sentence
from ldfi.experiments.store.schema import ExperimentRow, FindingRow
from ldfi.testing.programs import Caller, CallFailed
from ldfi.testing.sharing import Breaker
from ldfi.testing.world import World

SETTINGS = Settings(
    kinds=("error",), treatment=0.03, control=0.3, min_traffic=50, settle=1.0, follow=0.0
)
STARS = "api>http:GET:ratings/stars"
HURT, WELL = "users do not get what they ask for", "all got what they asked for"


def told(world: World) -> list[FindingStory]:
    """What the page says of each finding."""
    with world.database.read() as session:
        found = list(session.scalars(select(FindingRow)))
        tried = list(session.scalars(select(ExperimentRow)))
        shown = explained(session, found, None, Owners())
        return [finding_story(each, tried[::-1], (), "") for each in shown]


@contextmanager
def bystanders_hurt(on_record: Callable[[ExperimentRow], None]) -> Iterator[World]:
    """A world with one finding, of whose experiments it is written that they hurt others; the rest
    is as ``on_record`` makes it."""

    def boot(request: Caller) -> None:
        request.call(STARS)

    with World.in_memory({"/boot": boot}) as world:
        world.finish(world.start(SETTINGS))
        with world.database.change(world.now) as change:
            for row in change.session.scalars(select(ExperimentRow)):
                on_record(row)
                row.reason = "bystanders are hurt: 3 of 9 requests that nobody injected into failed"
        yield world


@pytest.mark.parametrize(
    ("hurt", "said"),
    [
        ({"spread": "turned away"}, "opens a circuit breaker for all"),
        ({"spread": "in vain"}, "use up a pool of connections that all share"),
    ],
    ids=["breaker", "pool"],
)
def test_it_says_that_others_are_hurt_and_how(hurt: dict[str, str], said: str) -> None:
    """Of a finding whose treated devices failed, and others as well."""

    def on_record(row: ExperimentRow) -> None:
        row.lesson = {**(row.lesson or {}), **hurt}

    with bystanders_hurt(on_record) as world:
        (story,) = told(world)
    assert story.finding.state == "open"
    assert said in story.spread
    assert "3 of 9 requests that nobody injected into failed" in story.spread
    assert not story.interference


def test_where_others_alone_are_hurt_there_is_no_finding() -> None:
    breaker = Breaker(failures=4, seconds=5)

    def boot(request: Caller) -> None:
        with suppress(CallFailed):
            breaker.call(request, STARS)

    with World.in_memory({"/boot": boot}) as world:
        campaign = world.start(replace(SETTINGS, treatment=0.1, control=0.1))
        for _ in range(2_000):
            world.step(requests=4, seconds=0.1)
            if not campaign.live():
                break
        assert not campaign.live()
        assert told(world) == []


def test_harm_and_that_nobody_was_hurt_are_never_said_of_one_finding() -> None:
    """By an earlier version's rule others' failures alone made a finding: it is on record, and is
    called interference wherever it is shown."""

    def on_record(row: ExperimentRow) -> None:
        arms = {arm: {**row.comparison[arm], "failures": 0} for arm in ("control", "treatment")}
        row.comparison = {**row.comparison, **arms}

    with bystanders_hurt(on_record) as world:
        (story,) = told(world)
        with world.database.read() as session:
            (finding,) = session.scalars(select(FindingRow))
            (shown,) = explained(session, [finding], None, Owners())
            pages = [
                now_of(ExperimentView.of(row)) for row in session.scalars(select(ExperimentRow))
            ]
    shown_with = {"base": "http://ldfi", "trace_url": "", "called": BY_THEIR_NAMES}
    template = environment().get_template("findings/finding_body.html")
    body = template.render(story=story, **shown_with)
    issues = [text for _, issue in story.issues for text in (issue.title, issue.body)]
    for each in (body, *issues, story.title, story.meaning, shown.view.sentence, story.saw):
        assert HURT not in each
        assert WELL not in each
        assert "hurts users" not in each
    assert story.interference
    assert "others fail beside" in body
    assert "interference" in shown.view.sentence
    for page in pages:
        assert page.verdict == outcome_in_a_sentence("inconclusive", 0)
        assert page.saw.startswith("Interference: ")


def test_any_other_finding_says_nothing_of_others() -> None:
    def boot(request: Caller) -> None:
        request.call("api>http:GET:ratings/stars")

    with World.in_memory({"/boot": boot}) as world:
        world.finish(world.start(SETTINGS))
        (story,) = told(world)
    assert story.spread == ""
    assert not story.interference
