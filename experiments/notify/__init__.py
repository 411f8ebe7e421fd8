"""Tells people what the service does: what is written with a change is delivered afterwards."""
