"""Signing the chain on record anew, for whoever has the key vouches for what is there."""

from __future__ import annotations

from typing import Any

WHO = "ldfi certificate adopt"
"""Who the audit names."""


def adopted() -> dict[str, dict[str, Any]]:
    """Sign the chain of each namespace as it is; return the heads by namespace, "" the default one.

    Raises Conflict where a chain does not follow from itself, or nobody has a key.
    """
    from ldfi.cli.extras import need
    from ldfi.cli.signing import signing
    from ldfi.experiments.cluster.config import Config
    from ldfi.experiments.store import chain, namespaces
    from ldfi.experiments.store.database import Database
    from ldfi.experiments.store.readonly import must_be_there
    from ldfi.experiments.telemetry import clock

    config = Config.load()
    url = config.database_url.get_secret_value()
    if url.startswith("postgresql"):
        need("postgresql")
    must_be_there(url)
    default = Database(url, signing(config))
    with default.read() as session:
        others = [each.name for each in namespaces.listed(session)]
    heads = {}
    for store in (default, *(namespaces.opened(url, default, name) for name in others)):
        with store.change(clock.now(), WHO) as change:
            heads[store.namespace] = chain.adopt(change).to_json()
        store.close()
    return heads
