"""lineage: traces in, evidence out.

    bytes ─ readers ─▶ Span ─ assembly ─▶ Trace ─ tree ─▶ Tree ─ evidence ─▶ Lineage

``ldfi.lineage.lineage.learn(trace)`` does the last two steps at once.
"""
