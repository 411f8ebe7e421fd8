"""That something hurts and that all got what they asked for never stand on one page, nor in one
answer of the API or of the command line, whatever is on record."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from sqlalchemy import select

from ldfi.cli.experiment_view import experiment_table, side_by_side
from ldfi.cli.findings import _picture
from ldfi.experiments.queries.wording import outcome_in_a_sentence
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import ExperimentRow, FindingRow
from tests.dashboards.browsing import Browser, site, text_of
from tests.dashboards.seeded import Seeded
from tests.kit.service import GIVEN, Unlimited, bearer, service

HARM = (
    "users do not get what they ask for with",
    "hurts users",
    outcome_in_a_sentence("harmful", 0),
)
WELL = "all got what they asked for"
OUTCOMES = st.sampled_from([(9, 0), (9, 9), (9, 4), (1, 0), (1, 1), (0, 0)])
ON_RECORD = st.tuples(
    st.sampled_from(["harmful", "tolerated", "inconclusive", None]), OUTCOMES, OUTCOMES
)
STATES = st.sampled_from(["suspected", "open", "acknowledged", "fixed", "regressed", "refuted"])
BYSTANDERS = st.booleans()
BESIDE = "bystanders are hurt: 3 of 9 requests that nobody injected into failed"


@pytest.fixture(scope="module")
def there(
    seeded_file: tuple[Path, Seeded], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Browser, httpx.Client, Database]]:
    url = f"sqlite:///{shutil.copy(seeded_file[0], tmp_path_factory.mktemp('both') / 'x.sqlite3')}"
    app = service(url)
    app.state.rate_limiter = Unlimited()
    with site(app) as here:
        database, api = Database(url), here.stranger().client
        api.headers.update(bearer(GIVEN["viewer"]))
        yield here.logged_in("viewer"), api, database
        database.close()


def rewritten(database: Database, draw: Callable[[Any], Any]) -> tuple[str, list[str]]:
    """Write another past of one finding; returns its id, and those of the experiments
    that tried just this."""
    with database.change(0.0) as change:
        finding = change.session.scalars(select(FindingRow)).first()
        assert finding is not None
        finding.state = draw(STATES)
        tried = [
            each
            for each in change.session.scalars(select(ExperimentRow))
            if sorted(each.hypothesis) == sorted(finding.faults) and each.comparison
        ]
        for row in tried:
            row.verdict, control, treatment = draw(ON_RECORD)
            arms = {
                name: {**row.comparison[name], "devices": devices, "failures": failures}
                for name, (devices, failures) in (("control", control), ("treatment", treatment))
            }
            row.comparison = {**row.comparison, **arms, "hurt": treatment[1]}
            row.reason = BESIDE if draw(BYSTANDERS) else "evidence"
        return finding.id, [row.id for row in tried]


def shown(what: Any) -> str:
    """What a terminal shows."""
    console = Console(file=io.StringIO(), width=400)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


There = tuple[Browser, httpx.Client, Database]


def check(there: There, draw: Callable[[Any], Any]) -> None:
    """Look at all that is said of one finding, and of the experiments that tried just this."""
    browser, api, database = there
    finding, tried = rewritten(database, draw)
    assert tried
    answer = api.get(f"/api/v1/findings/{finding}").json()
    experiments = [api.get(f"/api/v1/experiments/{each}").json() for each in tried]
    pages = [f"/findings/{finding}", *(f"/experiments/{each}" for each in tried)]
    said = {
        **{page: text_of(browser.get(page)) for page in pages},
        "API, finding": json.dumps(answer),
        "API, experiments": json.dumps(experiments),
        "command line, finding": shown(_picture(answer, experiments[0])),
        "command line, list": shown(experiment_table(experiments)),
        **{f"command line, {e['id']}": shown(side_by_side(e)) for e in experiments},
    }
    for where, text in said.items():
        # the legend of a picture of the evidence names both verdicts, whatever it came to
        harm = [each for each in HARM if each in text]
        harm += ["harmful"] if "harmful" in text and not where.startswith("/experiments/") else []
        assert not (harm and WELL in text), (where, harm)


def test_a_finding_that_was_survived_once(there: There) -> None:
    given = {ON_RECORD: ("tolerated", (9, 0), (9, 0)), STATES: "open"}
    check(there, lambda strategy: given.get(strategy, 0))


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_they_never_stand_together(there: There, data: st.DataObject) -> None:
    check(there, data.draw)
