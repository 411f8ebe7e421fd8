"""Forms of tests in frameworks and beside plugins: each finds what is planted, or says loudly that
it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldfi.explore.pytest.loop import NO_CALL, SKIPPED
from tests.explore.pytest.sessions import Document, Session

CASES = Path(__file__).parent / "forms"
NEEDED = "refused@app>http:GET:needed/"
PAIR = ["refused@app>http:GET:first/", "refused@app>http:GET:second/"]
OPTIONAL = "app>http:GET:optional/"
RIGHT = {
    "needed": ("harmful", [[NEEDED]]),
    "pair": ("harmful", [PAIR]),
    "survived": ("tolerated", []),
}
LOUD = {
    "test_child_process": NO_CALL,
    "test_looks_at_what_a_fixture_fetched": NO_CALL,
    "test_set_up": NO_CALL,
    "test_skips": SKIPPED,
}
"""Forms of which nothing can be known, with what is said."""


def judged(session: Session) -> dict[str, list[str]]:
    """The tests of a session by how they were judged: right, loud or wrong."""
    found: dict[str, list[str]] = {"right": [], "loud": [], "wrong": []}
    for name, each in session.documents.items():
        found[_judged(name, each)].append(name)
    return found


def _judged(name: str, test: Document) -> str:
    subject = next(each for each in RIGHT if each in name)
    form = name.rpartition("::")[2].partition("[")[0]
    told = (test["verdict"], [finding["injected"] for finding in test["findings"]])
    if told == RIGHT[subject] and (told[1] or test["points"] == [OPTIONAL]):
        return "right"
    said = ("inconclusive", LOUD.get(form, "nothing"))
    return "loud" if (test["verdict"], test["reason"]) == said else "wrong"


def test_some_forms_are_right_or_loud(tmp_path: Path) -> None:
    few = "survived and (standing or session or child)"
    session = Session(tmp_path, "-k", few, cases=CASES, within=True)

    found = judged(session)

    assert found["wrong"] == [], session.output
    assert (len(found["right"]), len(found["loud"])) == (2, 1)


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_each_form_is_right_or_loud(options: tuple[str, ...], tmp_path: Path) -> None:
    session = Session(tmp_path, *options, cases=CASES, within=not options)

    found = judged(session)

    assert found["wrong"] == [], session.output
    assert (len(found["right"]), len(found["loud"])) == (67, 11)


DOCTEST = '"""\n>>> 1\n1\n"""\nimport pytest\npytestmark = pytest.mark.ldfi\n'
ITEM = """
import pytest
class Row(pytest.Item):
    def runtest(self): pass
class Table(pytest.File):
    def collect(self):
        row = Row.from_parent(self, name="row")
        row.add_marker("ldfi")
        yield row
def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".table":
        return Table.from_parent(parent, path=file_path)
"""


@pytest.mark.parametrize(
    ("files", "code"), [({"case_doc.py": DOCTEST}, 0), ({"conftest.py": ITEM, "a.table": ""}, 1)]
)
def test_what_is_marked_and_no_function_is_never_passed_over_in_silence(
    files: dict[str, str], code: int, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    warned = ("-W", "default", "--doctest-modules")

    session = Session(tmp_path, *warned, cases=tmp_path, within=True)

    assert session.code == code
    assert "is marked with ldfi and is not explored" in session.output
