"""``ldfi experiment``: one hypothesis on one class, tried, approved, called off, looked at."""

from __future__ import annotations

from typing import Annotated

import typer

from ldfi.cli.control import (
    HERE,
    All,
    AsJson,
    Limit,
    Reason,
    Token,
    Url,
    Watch,
    connected,
    listed,
)
from ldfi.cli.experiment_view import experiment_table, side_by_side
from ldfi.cli.ids import HELP, path_of, posted_to
from ldfi.cli.request_names import Exact, called_by_people
from ldfi.cli.settings import Set, checked, pairs
from ldfi.cli.single_experiment import code_of, tried
from ldfi.cli.terminal import show, show_page

app = typer.Typer(
    help="One hypothesis on one request class, beside a control group.", no_args_is_help=True
)

Id = Annotated[str, typer.Argument(metavar="ID", help=f"The experiment's id, {HELP}.")]


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
        last = tried(client, "/experiments", document, watch=watch, as_json=as_json)
    if as_json:
        show(last, "", as_json=True)
    raise typer.Exit(code_of(last))


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
    exact: Exact = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """List experiments, newest first, with control against treatment."""
    wanted = {"state": state, "verdict": verdict, "request_class": request_class}
    page = listed(url, token, "/experiments", limit, everything, **wanted)
    called = called_by_people(url, token, exact=exact, as_json=as_json)
    table = experiment_table(page["items"], called)
    show_page(page, table, "No such experiment yet.", as_json=as_json)


@app.command("show")
def show_experiment(
    experiment_id: Id, token: Token, url: Url = HERE, as_json: AsJson = False
) -> None:
    """Show one experiment: control against treatment, the evidence, why it ended."""
    with connected(url, token) as client:
        experiment = client.get(path_of(client, "experiment", experiment_id))
    show(experiment, side_by_side(experiment), as_json=as_json)


@app.command()
def approve(experiment_id: Id, token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """Let an experiment that waits for approval be armed."""
    experiment = posted_to(url, token, "experiment", experiment_id, "approve")
    said = f"Approved. `ldfi experiment show {experiment['id']}` shows how it goes."
    show(experiment, said, as_json=as_json)


@app.command()
def reject(
    experiment_id: Id, reason: Reason, token: Token, url: Url = HERE, as_json: AsJson = False
) -> None:
    """Have an experiment that waits for approval never tried in its campaign."""
    experiment = posted_to(url, token, "experiment", experiment_id, "reject", {"reason": reason})
    show(experiment, "Rejected: its campaign will not try it.", as_json=as_json)


@app.command()
def abort(
    experiment_id: Id, reason: Reason, token: Token, url: Url = HERE, as_json: AsJson = False
) -> None:
    """Disarm an experiment at once. Its campaign goes on and may try the same again."""
    experiment = posted_to(url, token, "experiment", experiment_id, "abort", {"reason": reason})
    said = f"Disarmed. Campaign {experiment['campaign_id']} goes on and may try it again."
    show(experiment, said, as_json=as_json)
