"""From a finding to what mends it: where it breaks, what is missing there, and whose it is."""
