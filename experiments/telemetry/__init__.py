"""What the service tells of itself, and what it asks Prometheus."""
