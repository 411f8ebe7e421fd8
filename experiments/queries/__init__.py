"""What people and programs are shown of what the service knows: the one read layer."""
