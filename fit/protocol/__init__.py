"""What all languages share: points, faults, kinds, contexts, predicates, rules."""
