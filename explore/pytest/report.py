"""The report of a session: one JSON file for programs, the same as Markdown beside it, and the
evidence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ldfi.explore.pytest.describe_test import failure_of, headline, notes
from ldfi.explore.pytest.evidence import SUFFIX, write_evidence

FORMAT: Final = "ldfi-pytest/1"


def write_report(path: Path, documents: Sequence[dict[str, Any]]) -> None:
    """Write both files, and the evidence. ``path`` is that of the JSON. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ordered = sorted(documents, key=lambda each: each["test"])
    evidence = [each["evidence"] for each in ordered if each["evidence"] is not None]
    write_evidence(path.with_suffix(SUFFIX), evidence)
    found = [as_told(each) for each in ordered]
    path.write_text(
        json.dumps({"format": FORMAT, "tests": found}, indent=1, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )
    path.with_suffix(".md").write_text(as_markdown(found), encoding="utf-8")


def as_told(document: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of a test without its evidence, which has a file of its own."""
    return {key: value for key, value in document.items() if key != "evidence"}


def as_markdown(documents: Sequence[dict[str, Any]]) -> str:
    """Write all tests for people, as Markdown."""
    lines = ["# What the tests do when something fails", "", total(documents), ""]
    for document in documents:
        lines += [
            f"## `{document['test']}`",
            "",
            f"{document['verdict']}: {headline(document)}",
            "",
        ]
        if document["findings"]:
            lines += ["```", failure_of(document), "```", ""]
        else:
            lines += [*(f"- {note}" for note in notes(document)), ""]
    return "\n".join(lines)


def total(documents: Sequence[dict[str, Any]]) -> str:
    """Add up the figures of all tests, and say them."""
    found = sum(len(each["findings"]) for each in documents)
    runs = sum(each["runs"] for each in documents)
    kept = sum(each["kept"] for each in documents)
    before = f" and {kept} kept from before" if kept else ""
    every = sum(each["exhaustive"] for each in documents)
    sizes = " or ".join(map(str, sorted({each["max_size"] for each in documents})))
    tests = "1 test" if len(documents) == 1 else f"{len(documents)} tests"
    return (
        f"{tests} explored: found {found or 'nothing'} in {runs} runs{before}; "
        f"trying all of size ≤ {sizes} takes {every}"
    )
