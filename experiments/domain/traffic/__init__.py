"""What requests show: their lineages and outcomes, joined, and sorted into request classes."""
