"""How long each layer of the application waits, in seconds: strictly growing outward.

A caller must outlast its callee's worst case, fallbacks included, or a slow dependency that was
handled well deep inside is reported as a failure further out. So each limit is the sum of what may
happen in sequence beneath it, and some slack for a busy machine.
"""

from __future__ import annotations

from typing import Final

LOCAL: Final = 0.1
"""A look-up in this process's own cache, or a function of its own."""

LEAF: Final = 0.45
"""A call to a service that calls nobody: at most two local steps in sequence, 0.2 s."""

INNER: Final = 0.9
"""A call to a service with one LEAF call and at most two local steps in sequence, 0.65 s."""

PATIENCE: Final = 2.5
"""Seconds after which a user gives up, and the device with them. The gateway's worst case is a
local step, an INNER call, its LEAF fallback and another local step: 1.55 s."""
