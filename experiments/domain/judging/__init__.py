"""One experiment and its verdict: who counts, against whom, and when it is decided."""
