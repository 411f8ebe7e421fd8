"""A campaign of one experiment, from its beginning to the experiment's verdict."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import typer

from ldfi.analysis.words import length
from ldfi.cli import exits
from ldfi.cli.control import segment
from ldfi.cli.experiment_view import side_by_side
from ldfi.cli.terminal import console, show
from ldfi.cli.watch import Followed, follow, newest_event, over
from ldfi.errors import Conflict, NotFound

if TYPE_CHECKING:
    from ldfi.cli.client import Client


def tried(
    client: Client,
    path: str,
    document: dict[str, Any],
    *,
    watch: bool,
    as_json: bool,
    within: float = math.inf,
) -> dict[str, Any] | None:
    """Start a campaign of one experiment and follow it; return its last experiment, if any.

    What is aborted is not tried again behind one's back: its campaign is stopped, as it is when
    there is no verdict ``within`` so many seconds. Raises typer.Exit, the campaign shown, without
    ``watch``.
    """
    after = newest_event(client) if watch else None
    campaign = client.post(path, document)
    said = f"Campaign {campaign['id']} tries it."
    if not watch:
        more = f"`ldfi campaign watch {campaign['id']}` follows it."
        show(campaign, f"{said} {more}", as_json=as_json)
        raise typer.Exit(exits.FINE)
    screen = console(stderr=as_json)
    screen.print(said)
    seen = follow(client, campaign, after, screen, "with an abort", within)
    last = seen.ended[-1] if seen.ended else None
    _stop_unless_over(client, seen, campaign["run"], within)
    if last is None:
        screen.print(f"It was never tried: {_why_nothing(seen.campaign)}.", soft_wrap=True)
    elif not as_json:
        screen.print(side_by_side(last))
    return last


def code_of(experiment: dict[str, Any] | None) -> int:
    """Return the exit code for what an experiment came to; None: it was never tried."""
    verdict = None if experiment is None else experiment["verdict"]
    codes = {"harmful": exits.FOUND, "tolerated": exits.FINE}
    return codes.get(str(verdict), exits.INCONCLUSIVE)


def _stop_unless_over(client: Client, seen: Followed, run: int, within: float) -> None:
    if seen.aborted:
        why = f"its experiment was aborted: {seen.ended[-1]['reason']}"
    elif not over(seen.campaign, run):
        why = f"no verdict within {length(within)}"
    else:
        return
    try:
        client.post(f"/campaigns/{segment(seen.campaign['id'])}/stop", {"reason": why[:500]})
    except (NotFound, Conflict):
        return  # it is over by itself


def _why_nothing(campaign: dict[str, Any]) -> str:
    """Say what a campaign waits for in which nothing was tried."""
    waiting = [each["waiting"] for each in campaign["classes"]]
    known = [campaign["waiting"], *waiting, *campaign["not_yet"].values(), campaign["reason"]]
    return next(filter(None, known), "its class has not been seen")
