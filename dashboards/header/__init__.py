"""What the header of every page leads to: halt, search and tokens."""
