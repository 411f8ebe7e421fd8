"""What is tried next, and what it taught: from a campaign down to one result."""
