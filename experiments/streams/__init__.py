"""Streams: spans and device metrics in, observations and events out, through Kafka or in memory.

spans ─────────┐                            ┌─▶ observations ─▶ Intake (the scheduler's process)
               ├─▶ Worker (many, a group) ──┤
device-metrics ┘                            └─▶ dead-letters
"""
