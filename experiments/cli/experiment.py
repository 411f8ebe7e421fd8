"""``ldfi experiment``: one hypothesis on one class, tried, approved, called off, looked at."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldfi.experiments.cli import exits
from ldfi.experiments.cli.control import (
    HERE,
    All,
    AsJson,
    Limit,
    Reason,
    Token,
    Url,
    Watch,
    connected,
    segment,
)
from ldfi.experiments.cli.experiment_view import experiment_table, side_by_side
from ldfi.experiments.cli.settings import Set, checked, pairs
from ldfi.experiments.cli.terminal import console, show, show_page
from ldfi.experiments.cli.watch import follow, newest_event, over
from ldfi.experiments.cli.words import length
from ldfi.experiments.errors import Conflict, NotFound

if TYPE_CHECKING:
    from ldfi.experiments.cli.client import Client

app = typer.Typer(
    help="One hypothesis on one request class, beside a control group.", no_args_is_help=True
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The experiment's id.")]


@app.command("try")
def try_one(
    faults: Annotated[
        list[str],
        typer.Argument(metavar="FAULT...", help="Together: error@POINT, delay@POINT, down@SYSTEM."),
    ],
    request_class: Annotated[str, typer.Option("--class", help="The request class.")],
    token: Token,
    settings: Set = None,
    watch: Watch = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Try one hypothesis on one class, as a campaign of its own.

    With --watch: exit code 1 when it is harmful, 0 when tolerated, 3 when inconclusive or aborted.
    """
    from ldfi.experiments.api.new_campaign import NewExperiment

    asked = {"request_class": request_class, "hypothesis": faults}
    document = checked(NewExperiment, pairs(settings) | asked)
    with connected(url, token) as client:
        watched(client, "/experiments", document, watch=watch, as_json=as_json)


@app.command("list")
def list_experiments(
    token: Token,
    state: Annotated[
        str | None, typer.Option(help="waiting, armed, observing, settling, decided or aborted.")
    ] = None,
    verdict: Annotated[str | None, typer.Option(help="harmful, tolerated or inconclusive.")] = None,
    request_class: Annotated[str | None, typer.Option("--class", help="Of this class.")] = None,
    limit: Limit = 50,
    everything: All = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """List experiments, newest first, with control against treatment."""
    wanted = {"state": state, "verdict": verdict, "request_class": request_class}
    with connected(url, token) as client:
        page = client.page("/experiments", None if everything else limit, **wanted)
    show_page(page, experiment_table(page["items"]), "No such experiment yet.", as_json=as_json)


@app.command("show")
def show_experiment(
    experiment_id: Id, token: Token, url: Url = HERE, as_json: AsJson = False
) -> None:
    """Show one experiment: control against treatment, the evidence, why it ended."""
    with connected(url, token) as client:
        experiment = client.get(_path(experiment_id))
    show(experiment, side_by_side(experiment), as_json=as_json)


@app.command()
def approve(experiment_id: Id, token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """Let an experiment that waits for approval be armed."""
    with connected(url, token) as client:
        experiment = client.post(f"{_path(experiment_id)}/approve")
    said = f"Approved. `ldfi experiment show {experiment['id']}` shows how it goes."
    show(experiment, said, as_json=as_json)


@app.command()
def reject(
    experiment_id: Id, reason: Reason, token: Token, url: Url = HERE, as_json: AsJson = False
) -> None:
    """Have an experiment that waits for approval never tried in its campaign."""
    with connected(url, token) as client:
        experiment = client.post(f"{_path(experiment_id)}/reject", {"reason": reason})
    show(experiment, "Rejected: its campaign will not try it.", as_json=as_json)


@app.command()
def abort(
    experiment_id: Id, reason: Reason, token: Token, url: Url = HERE, as_json: AsJson = False
) -> None:
    """Disarm an experiment at once. Its campaign goes on and may try the same again."""
    with connected(url, token) as client:
        experiment = client.post(f"{_path(experiment_id)}/abort", {"reason": reason})
    said = f"Disarmed. Campaign {experiment['campaign_id']} goes on and may try it again."
    show(experiment, said, as_json=as_json)


def watched(
    client: Client, path: str, document: dict[str, Any], *, watch: bool, as_json: bool
) -> None:
    """Start a campaign of one experiment, and with ``watch`` follow that to its verdict.

    An experiment that was asked for once and is aborted is not tried again behind one's back: its
    campaign is stopped.
    """
    after = newest_event(client) if watch else None
    campaign = client.post(path, document)
    said = f"Campaign {campaign['id']} tries it. `ldfi campaign watch {campaign['id']}` follows it."
    if not watch:
        show(campaign, said, as_json=as_json)
        return
    last = verdict_of(client, campaign, after, as_json=as_json)
    if as_json:
        show(last, "", as_json=True)
    raise typer.Exit(code_of(last))


def verdict_of(
    client: Client,
    campaign: dict[str, Any],
    after: int | None,
    *,
    as_json: bool,
    within: float = math.inf,
) -> dict[str, Any] | None:
    """Follow a campaign of one experiment; its last experiment, None if there was none.

    What is aborted, or has no verdict ``within`` so many seconds, is stopped.
    """
    screen = console(stderr=as_json)
    screen.print(f"Campaign {campaign['id']} tries it.")
    seen = follow(client, campaign, after, screen, "with an abort", within)
    last = seen.ended[-1] if seen.ended else None
    if last is not None and seen.aborted:
        _stop(client, campaign["id"], f"its experiment was aborted: {last['reason']}")
    elif not over(seen.campaign, campaign["run"]):
        _stop(client, campaign["id"], f"no verdict within {length(within)}")
    if last is None:
        screen.print(f"It was never tried: {why_nothing(seen.campaign)}.", soft_wrap=True)
    elif not as_json:
        screen.print(side_by_side(last))
    return last


def why_nothing(campaign: dict[str, Any]) -> str:
    """What a campaign waits for in which nothing was tried."""
    waiting = [each["waiting"] for each in campaign["classes"]]
    known = [campaign["waiting"], *waiting, *campaign["not_yet"].values(), campaign["reason"]]
    return next(filter(None, known), "its class has not been seen")


def code_of(experiment: dict[str, Any] | None) -> int:
    """What an experiment came to; None: it was never tried."""
    verdict = None if experiment is None else experiment["verdict"]
    codes = {"harmful": exits.FOUND, "tolerated": exits.FINE}
    return codes.get(str(verdict), exits.INCONCLUSIVE)


def _stop(client: Client, campaign_id: str, why: str) -> None:
    try:
        client.post(
            f"/campaigns/{segment(campaign_id)}/stop",
            {"reason": why[:500]},
        )
    except (NotFound, Conflict):
        return  # it is over by itself


def _path(experiment_id: str) -> str:
    return f"/experiments/{segment(experiment_id)}"
