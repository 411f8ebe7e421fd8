"""Where requests enter: paths by their templates, and calls by their names while those are few.

The features of a request say what an edge sees. Which of it tells *where* it enters is learned:
a name in a path is a value (:mod:`ldfi.lineage.templates`), and where one address takes calls of
ever more names, the late ones, which are the rare ones, are put together under the address.
"""

from __future__ import annotations

from ldfi.fit.protocol.features import Features
from ldfi.lineage.classes import CALLED
from ldfi.lineage.templates import Templates

MOST_CALLS = 200
"""Names of calls at one address that are told apart."""

MOST_ADDRESSES = 2_000


class ClassAssignment:
    """What was learned of where the requests of all services enter."""

    def __init__(self) -> None:
        self._templates = Templates()
        self._called: dict[tuple[str, str, str], set[tuple[str | None, ...]]] = {}

    def features(self, service: str, features: Features) -> Features:
        """Return the features of a request as they are where it enters: the same object, where
        nothing has to be changed."""
        path = features.get("path")
        if path is None:
            return features
        if "route" not in features:
            template = self._templates.template(service, features.get("method", ""), path)
            if template != path:
                features = {**features, "path": template, "route": template}
        if "protocol" in features and not self._told(service, features):
            return {name: value for name, value in features.items() if name not in CALLED}
        return features

    def learn(self, service: str, features: Features, support: frozenset[str] | None) -> bool:
        """Take in a request; tell whether templates have changed. ``support``: None where it
        teaches nothing."""
        path = features.get("path")
        if path is None or support is None or "route" in features:
            return False
        return self._templates.learn(service, features.get("method", ""), path, support)

    def look(self, service: str, features: Features) -> bool:
        """Learn from what is remembered, before a class is made of such requests; tell whether
        templates have changed."""
        path = features.get("path")
        known = path is not None and "route" not in features
        return known and self._templates.look(service, features.get("method", ""), path or "")

    def declare(self, service: str, features: Features) -> None:
        """Take for known where the requests of a class enter."""
        path = features.get("path")
        if path is not None:
            self._templates.declare(service, features.get("method", ""), path)
            self._told(service, features)

    def _told(self, service: str, features: Features) -> bool:
        """Return whether a call's name has a place of its own; give it one, while there is room."""
        called = tuple(map(features.get, CALLED))
        if not any(called):
            return True
        address = (service, features.get("method", ""), features.get("path", ""))
        known = self._called.get(address)
        if known is None:
            if len(self._called) >= MOST_ADDRESSES:
                return False
            known = self._called[address] = set()
        if called not in known and len(known) < MOST_CALLS:
            known.add(called)
        return called in known
