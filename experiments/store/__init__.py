"""What survives a restart: campaigns, experiments, findings, the halt, and who did what.

One module for each kind of thing; their functions run inside a transaction of :class:`Database`.
"""

from ldfi.experiments.store.database import Database

__all__ = ["Database"]
