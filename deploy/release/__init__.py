"""How a release is cut: the one version number, and what each language's registry is given."""
