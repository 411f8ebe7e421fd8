"""The command line, ``ldfi``."""
