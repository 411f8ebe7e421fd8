"""The place *Weaknesses*: all findings, and each one by itself."""
