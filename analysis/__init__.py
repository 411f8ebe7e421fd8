"""analyze: what trace files say, without injecting anything."""
