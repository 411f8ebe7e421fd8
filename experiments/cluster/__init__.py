"""What one process of the service is: its configuration, its role, and how one of them leads."""
