"""What a request of the test carries: a signed failure context, and a ``traceparent``."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ldfi.errors import Invalid
from ldfi.fit import baggage
from ldfi.fit.protocol.context import encode
from ldfi.fit.protocol.errors import KeyFormatError
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import VARIABLE, Keys
from ldfi.fit.protocol.notation import draw_key_of
from ldfi.fit.protocol.scenario import scenario_of

DEVICE: Final = "ldfi-test"
"""The device in whose name the test's requests go: an edge lets its signed context in."""

DEVICE_HEADER: Final = "x-device-id"

LIFETIME: Final = 3600
"""Seconds a context is valid."""


@dataclass(frozen=True, slots=True)
class SharedKeys:
    """The keys that contexts are signed with, as text, and what an exporter shows to send spans."""

    text: str = field(repr=False)

    @classmethod
    def of_environment(cls) -> SharedKeys:
        """Take the keys of this process's environment, or make some. Raises Invalid."""
        text = os.environ.get(VARIABLE, "")
        made = cls(text or f"test:{secrets.token_hex(16)}")
        try:
            Keys.parse(made.text)
        except KeyFormatError as error:
            raise Invalid(str(error)) from error
        return made

    @property
    def keys(self) -> Keys:
        """Return the keys."""
        return Keys.parse(self.text)

    @property
    def token(self) -> str:
        """Derive the token from the keys, so that it need not be handed around."""
        return hashlib.sha256(f"ldfi receive\n{self.text}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the requests of one run carry. ``delay``: seconds that a call hangs, at the longest."""

    keys: Keys
    faults: Sequence[Fault]
    delay: float

    def context(self, device: str = DEVICE) -> str:
        """Sign the failure context in the name of a device."""
        return encode(
            self.keys,
            scenario_of(device),
            "treatment",
            int(time.time()) + LIFETIME,
            self.faults,
            delay_ms=max(1, round(self.delay * 1000)),
            draw_key=draw_key_of(self.faults),
        )

    def headers(
        self, trace_id: str, span_id: str, device: str | None, carried: str
    ) -> dict[str, str]:
        """Return the headers of a request. ``device``: as the request itself says, ``carried``:
        its baggage."""
        cleaned = baggage.without(carried) if carried else ""
        return {
            "traceparent": f"00-{trace_id}-{span_id}-01",
            "baggage": baggage.with_entry(cleaned, self.context(device or DEVICE)),
            DEVICE_HEADER: device or DEVICE,
        }
