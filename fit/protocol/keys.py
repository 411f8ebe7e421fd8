"""The keys that sign failure contexts. Whoever lacks them injects nothing.

``FIT_KEYS`` holds ``id:secret`` pairs, separated by commas. The first signs, all of them verify;
so a key is rotated by putting the new one in front everywhere, and dropping the old one later.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

from ldfi.fit.protocol.errors import KeyFormatError

VARIABLE = "FIT_KEYS"
MIN_SECRET_LENGTH = 16
MAC_LENGTH = 22
"""Characters: 128 bits of HMAC-SHA256 in base64url. RFC 2104, section 5 allows truncation."""

_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,16}")


@dataclass(frozen=True, slots=True)
class Keys:
    """A signing key and every key that is still accepted."""

    signing_id: str
    secrets: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Keys:
        """Read the value of ``FIT_KEYS``. Raises KeyFormatError; the message shows no secret."""
        secrets: dict[str, bytes] = {}
        for position, pair in enumerate(filter(None, map(str.strip, text.split(","))), start=1):
            key_id, colon, secret = pair.partition(":")
            if not colon or not _KEY_ID.fullmatch(key_id):
                raise KeyFormatError(
                    f"key number {position} in {VARIABLE} is not ID:SECRET with an ID of up to 16 "
                    "letters, digits, - or _"
                )
            if len(secret) < MIN_SECRET_LENGTH:
                raise KeyFormatError(
                    f"the secret of key {key_id!r} in {VARIABLE} has {len(secret)} characters; "
                    f"it needs at least {MIN_SECRET_LENGTH}"
                )
            if key_id in secrets:
                raise KeyFormatError(f"key {key_id!r} stands in {VARIABLE} twice; drop one of them")
            try:
                secrets[key_id] = secret.encode()
            except UnicodeEncodeError:
                raise KeyFormatError(
                    f"the secret of key {key_id!r} in {VARIABLE} is not UTF-8"
                ) from None
        if not secrets:
            raise KeyFormatError(f"{VARIABLE} is empty; write ID:SECRET, or unset it")
        return cls(next(iter(secrets)), secrets)

    def sign(self, payload: str, key_id: str | None = None) -> str:
        """Return the MAC of ``payload`` under one key, the signing key by default."""
        digest = hmac.new(
            self.secrets[key_id or self.signing_id], payload.encode(), hashlib.sha256
        ).digest()
        return urlsafe_b64encode(digest[:16]).decode().rstrip("=")

    def verify(self, payload: str, key_id: str, mac: str) -> bool:
        """Return whether ``mac`` signs ``payload`` under the named key. Constant time in
        ``mac``."""
        if key_id not in self.secrets:
            return False
        return hmac.compare_digest(self.sign(payload, key_id).encode(), mac.encode())
