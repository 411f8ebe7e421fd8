"""The tests of a project, explored by the pytest plugin, or by trying everything.

``-p tests.examples.storefront_runs`` makes pytest run each test under every set of faults of at
most two, in place of what the plugin does. A minimal set is written in point faults: ``down@X`` is
an error at each of the points that reach X.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

from ldfi.experiments.domain.campaign.kinds import Kinds
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.explore.pytest.loop import QUIET, Explored, ExploredVerdict, Finding
from ldfi.explore.pytest.marker import Bounds
from ldfi.explore.pytest.run import Execute, Run
from ldfi.fit.protocol.faults import Fault

EXAMPLE = Path(__file__).parents[2] / "examples" / "storefront"
SHARE = 1 / 3
Document = dict[str, Any]


def pytest_configure() -> None:
    """Replace exploring by trying everything, as a plugin of pytest's."""
    from ldfi.explore.pytest import protocol

    vars(protocol)["explore"] = try_everything


def try_everything(_: str, execute: Execute, bounds: Bounds, *__: Callable[[], object]) -> Explored:
    """Try every set of faults at points that any of these runs called; find the minimal that
    fail. As the plugin does, it looks at two runs without faults, and tries each finding again."""
    good, _again = execute(()), execute(())
    called, tried = set(good.lineage.called), dict[frozenset[Fault], Run]()
    while todo := [each for each in _sets(called, bounds) if each not in tried]:
        for each in todo:
            tried[each] = execute(tuple(sorted(each)))
            called |= tried[each].lineage.called
    failing = [each for each, run in tried.items() if run.passed is False]
    findings = [
        Finding(frozenset(map(str, each)), tuple(sorted(each)), tried[each], confirmed=True)
        for each in failing
        if not any(smaller < each for smaller in failing)
    ]
    for finding in findings:
        execute(finding.injected)
    verdict: ExploredVerdict = "harmful" if findings else "tolerated"
    runs = QUIET + len(tried) + len(findings)
    return Explored(verdict, runs=runs, findings=findings, exhaustive=runs, good=good)


def _sets(called: set[str], bounds: Bounds) -> list[frozenset[Fault]]:
    points = sorted(point for point in called if matching(bounds.protected, [point]) is None)
    kinds = Kinds(bounds.kinds)
    faults = [Fault.parse(fault) for point in points for fault in kinds.at(point)]
    chosen = (
        frozenset(each) for n in range(1, bounds.max_size + 1) for each in combinations(faults, n)
    )
    return [each for each in chosen if len({fault.point for fault in each}) == len(each)]


def explored(project: Path, *options: str) -> list[Document]:
    """Run the tests of a project, and read what they come to."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
        done = subprocess.run(
            [*command, f"--ldfi-report={report}"],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.exists():
            raise RuntimeError(done.stdout + done.stderr)
        tests: list[Document] = json.loads(report.read_text(encoding="utf-8"))["tests"]
        return tests


def found(document: Document) -> set[frozenset[str]]:
    """List the findings of a test, in point faults."""
    return {frozenset(each["injected"]) for each in document["findings"]}
