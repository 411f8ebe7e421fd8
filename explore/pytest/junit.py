"""What was found, as JUnit's XML: for whatever reads the results of tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ldfi.explore.pytest.describe_test import failure_of, headline, notes


def write_junit(path: Path, documents: Sequence[Mapping[str, Any]]) -> None:
    """Write one test case for each test that was explored. Raises OSError."""
    bad = [each for each in documents if each["verdict"] != "tolerated"]
    said = {"name": "ldfi", "tests": str(len(documents)), "failures": str(len(bad))}
    suite = ElementTree.Element("testsuite", said)
    for document in documents:
        about = {"classname": "ldfi", "name": document["test"], "time": str(document["seconds"])}
        case = ElementTree.SubElement(suite, "testcase", about)
        failure = failure_of(document)
        if failure:
            told = {"message": headline(document), "type": document["verdict"]}
            ElementTree.SubElement(case, "failure", told).text = failure
        else:
            ElementTree.SubElement(case, "system-out").text = "\n".join(
                [headline(document), *notes(document)]
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
