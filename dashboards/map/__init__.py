"""The place *Map*: what services and request classes rely on."""
