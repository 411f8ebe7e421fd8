"""Lineage-driven fault injection: finds the failures that hurt users, before they happen.

Every room is imported from here: ``from ldfi import fit``. In a checkout the rooms are folders of
the top level and this package links to them; in what is installed they are its subpackages.
"""
