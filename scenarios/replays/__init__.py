"""Load that is replayed: recorded requests sent at a set pace, measured, and compared."""
