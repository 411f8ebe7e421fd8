"""A shop's front: it owns no data, and asks a dozen other services for every page."""
