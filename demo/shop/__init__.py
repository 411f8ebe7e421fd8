"""The small world: a shop of seven services in three processes, quick to start on any machine.

    shop ─┬─ layout
          ├─ offers, else offers-cache
          ├─ prices
          └─ stock ── stockdb

Each service is a module with ``routes``. Calls have no timeouts of their own: nothing here is slow,
and on a busy machine a timeout would look like a failure.
"""

from __future__ import annotations
