"""fit: what runs inside the systems under test."""
