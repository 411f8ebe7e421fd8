"""The place *Now*: how things stand, and whether an outage was our doing."""
