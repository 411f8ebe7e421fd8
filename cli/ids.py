"""Ids as people type them: so much of their beginning as tells one from the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ldfi.cli.control import connected, segment
from ldfi.errors import Invalid, NotFound

if TYPE_CHECKING:
    from ldfi.cli.client import Client

PLACES: Final = {
    "campaign": "/campaigns",
    "experiment": "/experiments",
    "finding": "/findings",
    "maintenance": "/maintenance",
    "replay": "/replays/runs",
}
"""Where the API has what has an id, by its kind."""

WHOLE: Final = 12
"""Letters of an id: what is as long is not looked up."""

HELP: Final = "or as much of its beginning as tells it from others"


def path_of(client: Client, kind: str, typed: str) -> str:
    """Find where the API has what was typed. Raises Invalid where it may be several."""
    return f"{PLACES[kind]}/{segment(whole(client, typed, kind))}"


def whole(client: Client, typed: str, kind: str | None = None) -> str:
    """Return the one id that begins like this, among those of a kind or among all.

    Where there is none, what was typed: the service says best what it does not know. Raises
    Invalid, with the candidates, where there are several.
    """
    if len(typed) >= WHOLE:
        return typed
    found = {each["id"]: each for each in beginning_with(client, typed, kind)}
    if not found:
        return typed
    return str(only(typed, list(found.values()))["id"])


def beginning_with(client: Client, typed: str, kind: str | None = None) -> list[dict[str, Any]]:
    """List what has an id that begins like this; nothing where the service is too old to know."""
    try:
        found: list[dict[str, Any]] = client.get_all("/ids", begin=typed, kind=kind)
    except NotFound:
        return []
    return found


def only(typed: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the one that is meant. Raises Invalid where it may be several, and names them."""
    exact = [each for each in found if each["id"] == typed]
    if len(exact) == 1 or len(found) == 1:
        return (exact or found)[0]
    lines = (f"\n  {each['kind']} {each['id']}  {each['name']}".rstrip() for each in found)
    raise Invalid(f"{typed} begins several ids; type more of the one you mean:{''.join(lines)}")


def posted_to(
    url: str, token: str, kind: str, typed: str, action: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Do something to what was typed, and return what the service answers."""
    with connected(url, token) as client:
        answer: dict[str, Any] = client.post(f"{path_of(client, kind, typed)}/{action}", body)
    return answer
