"""Scenarios: a finding as something an engineer can keep, read, compare and replay."""
