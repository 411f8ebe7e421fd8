"""``ldfi findings``: what hurts, and what has become of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ldfi.analysis.repairs.request_names import BY_THEIR_NAMES
from ldfi.cli import exits
from ldfi.cli.campaign_view import by_harm, finding_table
from ldfi.cli.control import (
    HERE,
    All,
    AsJson,
    Html,
    Limit,
    Token,
    Url,
    connected,
    listed,
    segment,
)
from ldfi.cli.durations import seconds
from ldfi.cli.ids import HELP, path_of, posted_to, whole
from ldfi.cli.request_names import Exact, called_by_people
from ldfi.cli.settings import Set, checked, pairs
from ldfi.cli.single_experiment import code_of, tried
from ldfi.cli.terminal import Card, console, show
from ldfi.cli.words import BYSTANDERS_HURT, styled, when


class ListByDefault(TyperGroup):
    """``ldfi findings`` alone is ``ldfi findings list``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """With options only, the command is ``list``."""
        if not args or (args[0].startswith("-") and args[0] != "--help"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(help="What hurts, and what has become of it.", cls=ListByDefault)

Id = Annotated[str, typer.Argument(metavar="ID", help=f"The finding's id, {HELP}.")]


@app.command("list")
def list_findings(
    token: Token,
    state: Annotated[
        str | None,
        typer.Option(
            help="killed, suspected, open, acknowledged, fixed, regressed, refuted or superseded."
        ),
    ] = None,
    request_class: Annotated[str | None, typer.Option("--class", help="Of this class.")] = None,
    campaign: Annotated[
        str | None, typer.Option(help=f"First found by this campaign: its id, {HELP}.")
    ] = None,
    limit: Limit = 50,
    everything: All = False,
    exact: Exact = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """List findings, the worst first: what each is in a sentence, and who owns it.

    What kills a process comes first, then what hurts, with the fewest failures at once; what is
    over comes last.
    """
    wanted = {"state": state, "request_class": request_class}
    if campaign:
        with connected(url, token) as client:
            wanted["campaign_id"] = whole(client, campaign, "campaign")
    called = called_by_people(url, token, exact=exact, as_json=as_json)
    known = listed(url, token, "/findings", 0, True, **wanted, exact=called is BY_THEIR_NAMES)
    found = by_harm(known["items"])
    shown = found if everything else found[:limit]
    empty = (
        "No such finding."
        if any(wanted.values())
        else "Nothing found yet. `ldfi campaign start` looks for failures."
    )
    picture = finding_table(shown, called) if shown else empty
    show({"items": shown, "cursor": None, "found": len(found)}, picture, as_json=as_json)
    if len(shown) < len(found) and not as_json:
        left = f"The worst {len(shown)} of {len(found)}; --limit or --all show more."
        console(stderr=True).print(left)


@app.command("show")
def show_finding(
    finding_id: Id, token: Token, html: Html = None, url: Url = HERE, as_json: AsJson = False
) -> None:
    """Show one finding, with the traces that prove it."""
    with connected(url, token) as client:
        path = path_of(client, "finding", finding_id)
        finding = client.get(path)
        found_by = client.get(f"/experiments/{segment(finding['experiment_id'])}")
        if html is not None:
            html.write_text(client.page_file(f"{path}/file"), encoding="utf-8")
    show(finding, _picture(finding, found_by), as_json=as_json)


@app.command("scenario")
def scenario_of_finding(
    finding_id: Id,
    token: Token,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write a file instead of showing it.")
    ] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Write a finding as a scenario: a file for `ldfi reproduce` and `ldfi export`."""
    from ldfi.scenarios.scenario import of_document

    with connected(url, token) as client:
        path = path_of(client, "finding", finding_id)
        scenario = of_document(client.get(f"{path}/scenario"))
    if out is not None:
        out.write_text(scenario.to_yaml(), encoding="utf-8")
        show(scenario.to_json(), f"{out} holds finding {finding_id}.", as_json=as_json)
    elif as_json:
        typer.echo(json.dumps(scenario.to_json()))
    else:
        typer.echo(scenario.to_yaml(), nl=False)


@app.command("issue")
def issue_of_finding(
    finding_id: Id,
    token: Token,
    tracker: Annotated[
        str, typer.Option("--for", help="In whose markup: github, gitlab or jira.")
    ] = "github",
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Write a finding as an issue for a tracker: its title, an empty line, its text.

    Nothing is sent anywhere: pipe it where you want it.
    """
    with connected(url, token) as client:
        path = path_of(client, "finding", finding_id)
        issue = client.get(f"{path}/issue", tracker=tracker)
    if as_json:
        typer.echo(json.dumps(issue))
    else:
        typer.echo(f"{issue['title']}\n\n{issue['body']}", nl=False)


@app.command()
def ack(
    finding_id: Id,
    note: Annotated[str, typer.Option(help="What is to be done, and who does it.")],
    token: Token,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Acknowledge a finding: somebody knows of it, and the note says what will be done."""
    finding = posted_to(url, token, "finding", finding_id, "acknowledge", {"note": note})
    show(finding, f"Finding {finding['id']} is acknowledged.", as_json=as_json)


@app.command()
def link(
    finding_id: Id,
    page: Annotated[
        str, typer.Argument(metavar="URL", help="Where people work on it; '' nowhere.")
    ],
    token: Token,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Give a finding the page of an issue tracker on which people work on it."""
    finding = posted_to(url, token, "finding", finding_id, "link", {"tracker_url": page or None})
    said = f"is worked on at {page}" if page else "has no page of a tracker any more"
    show(finding, f"Finding {finding['id']} {said}.", as_json=as_json)


@app.command()
def verify(
    finding_id: Id,
    token: Token,
    settings: Set = None,
    watch: Annotated[
        bool, typer.Option(help="Wait for the verdict, and show what happens.")
    ] = True,
    within: Annotated[
        str, typer.Option(help="Give up when there is no verdict after so long: 90s, 15m, 2h.")
    ] = "15m",
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Try a finding once more, now: is it fixed, or does it still hurt?

    It is fixed when it was survived twice running. It is tried as it was found, within the bounds
    of the campaign that found it; --set changes them. Exit code 0 when it is fixed, 1 when it still
    hurts, 3 when nobody can say: inconclusive, aborted, or not tried in time.
    """
    from ldfi.experiments.api.new_campaign import Bounded

    bounds, patience = checked(Bounded, pairs(settings)), seconds(within, "--within")
    with connected(url, token) as client:
        path = path_of(client, "finding", finding_id)
        last = tried(
            client, f"{path}/verify", bounds, watch=watch, as_json=as_json, within=patience
        )
        finding = client.get(path)
    code = code_of(last)
    if code == exits.FINE and finding["state"] in {"open", "acknowledged", "regressed"}:
        code = exits.INCONCLUSIVE  # survived once, and not tried again
    said = "Nobody can say whether it is fixed; it" if code == exits.INCONCLUSIVE else "It"
    said = f"{said} is {finding['state']}: finding {finding['id']}."
    show({"finding": finding, "experiment": last}, said, as_json=as_json)
    raise typer.Exit(code)


def _picture(finding: dict[str, Any], found_by: dict[str, Any]) -> Card:
    grid = Card()
    grid.add_row("finding", finding["id"])
    grid.add_row("state", styled(finding["state"]))
    grid.add_row("says", finding["sentence"])
    grid.add_row("request class", finding["request_class"])
    grid.add_row("faults", "\n".join(finding["faults"]))
    if found_by["reason"].startswith(BYSTANDERS_HURT):
        grid.add_row("others", found_by["reason"])
    for each in finding["repairs"]:
        code = f" It is called at {each['code']}." if each["code"] else ""
        grid.add_row("mend", f"{each['said']} {each['why']}{code}")
    grid.add_row("owner", ", ".join(finding["owners"]) or "nobody")
    grid.add_row("found", f"{when(finding['found_at'])}")
    grid.add_row(
        "verified", f"{when(finding['verified_at'])}" if finding["verified_at"] else "never"
    )
    grid.add_row("campaign", finding["campaign_id"])
    grid.add_row("experiment", finding["experiment_id"])
    grid.add_row("traces", "\n".join(finding["traces"]) or "none kept")
    for name, value in (("note", finding["note"]), ("tracker", finding["tracker_url"])):
        if value:
            grid.add_row(name, value)
    return grid
