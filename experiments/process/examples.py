"""Secrets that everybody can read: those of the examples that this repository publishes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ldfi.experiments.process.config import Config

_BEGIN: Final = ("example", "changeme", "change-me")

ADVICE: Final = (
    "`ldfi init` makes keys and tokens, `deploy/secrets.sh` an .env for compose, "
    "`openssl rand -hex 24` a single one"
)


def is_example(secret: str) -> bool:
    """Tell whether a secret is one of the published examples, or stands for one to be made."""
    return secret.strip().lower().startswith(_BEGIN)


def examples_in(config: Config) -> Iterator[str]:
    """Name the options whose secret, or a part of it, everybody can read."""
    from sqlalchemy.engine import make_url

    parts: dict[str, list[str]] = {
        "database_url": [str(make_url(config.database_url.get_secret_value()).password or "")],
        "tokens": [each.rpartition(":")[2] for each in config.tokens.get_secret_value().split(",")],
    }
    for name in ("member_key", "webhook_secret", "prometheus_token", "kafka_password"):
        value = getattr(config, name)
        parts[name] = [value.get_secret_value()] if value is not None else []
    for name, secrets in parts.items():
        if any(map(is_example, secrets)):
            yield name
