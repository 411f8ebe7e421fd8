"""Secrets that everybody can read: those of the examples that this repository publishes."""

from __future__ import annotations

from typing import Final

_BEGIN: Final = ("example", "changeme", "change-me")

ADVICE: Final = (
    "`ldfi init` makes keys and tokens, `deploy/secrets.sh` an .env for compose, "
    "`openssl rand -hex 24` a single one"
)


def is_example(secret: str) -> bool:
    """Return whether a secret is one of the published examples, or stands for one to be made."""
    return secret.strip().lower().startswith(_BEGIN)
