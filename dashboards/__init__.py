"""Web pages over the service."""
