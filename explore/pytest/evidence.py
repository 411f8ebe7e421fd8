"""What the runs of tests leave behind: the same file as a service gives out, signed by nobody.

A test has no control group, so each run has an outcome in place of evidence. Whoever doubts one
runs the test again. `ldfi certificate check` and `verify` read the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ldfi.checker.document import FORMAT
from ldfi.checker.outcome import OutcomeRecord

SUFFIX: Final = ".evidence.json"
VERSION: Final = 1
"""A test has one version: it is explored anew each time."""


def class_evidence(
    test: str, certificate: Mapping[str, Any], records: Sequence[OutcomeRecord]
) -> dict[str, Any]:
    """Write the certificate of one test with every run under faults."""
    runs = [
        {"index": index, "record": each.to_json(), "path": []} for index, each in enumerate(records)
    ]
    return {
        "request_class": test,
        "version": VERSION,
        "certificate": dict(certificate),
        "runs": runs,
        "unsigned": [],
    }


def write_evidence(path: Path, classes: Sequence[Mapping[str, Any]]) -> None:
    """Write the file of a session. Raises OSError."""
    document = {"format": FORMAT, "head": None, "grown": [], "classes": list(classes)}
    path.write_text(json.dumps(document, ensure_ascii=False) + "\n", encoding="utf-8")
