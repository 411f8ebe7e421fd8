"""Faults in the words of other tools: what ``ldfi export`` writes.

Each target has one module. What a target cannot express is refused, and what it loses is said.
"""
