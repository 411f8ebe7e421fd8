"""Tells whether a request is one of its scenario's class, as an edge would see it.

A request of another class may well go right where the finding does not, so that a scenario which
sent one would call the finding fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from ldfi.fit.protocol.features import request_features
from ldfi.scenarios.scenario import Scenario


def lacking(
    scenario: Scenario, target: str, headers: Mapping[str, str], body: bytes | None = None
) -> str | None:
    """Return what keeps a request out of the class; None if it is in it, or no edge could tell.

    ``target``: path and query. The names of ``headers`` are in small letters.
    """
    predicate = scenario.request_class.meant()
    wanted = {each.feature for each in predicate.conditions}
    if "operation" in wanted:  # it did not come in over HTTP
        return None
    path, _, query = target.partition("?")
    method = scenario.request.method
    features = request_features(method, unquote(path), query, headers.items(), body, wanted)
    missed = [str(each) for each in predicate.conditions if not each.holds(features)]
    if not missed:
        return None
    return (
        f"not a request of {scenario.request_class.name}, so it would prove nothing; it would have "
        f"to be: {'; '.join(missed)}"
    )
