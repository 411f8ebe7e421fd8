"""What survives a restart: campaigns, experiments, findings, the halt, and who did what."""

from experiments.store.store import Store

__all__ = ["Store"]
