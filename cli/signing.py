"""The keys that certificates are signed with, from the configuration."""

from __future__ import annotations

from ldfi.checker.errors import Unreadable
from ldfi.checker.head import SigningKey, signing_keys
from ldfi.cli.extras import need
from ldfi.errors import InvalidConfig
from ldfi.experiments.cluster.config import Config


def signing(config: Config) -> tuple[SigningKey, ...]:
    """Read the keys that sign. Raises InvalidConfig, or ModuleNotFoundError without the extra."""
    if config.signing_key is None:
        return ()
    need("signing")
    try:
        return signing_keys(config.signing_key.get_secret_value())
    except Unreadable as error:
        raise InvalidConfig(f"signing_key: {error}") from error
