"""What edges in other languages are held to is what the edge in Python does."""

from __future__ import annotations

from tests.fit.edge_vectors import FILE, text


def test_the_vectors_of_edges_are_what_python_does() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "run python -m tests.fit.edge_vectors"
