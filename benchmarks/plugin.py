"""``python -m benchmarks.plugin [--json]``: the pytest plugin against trying everything.

The example project's tests (``examples/storefront``) are explored by the plugin, and by running
each under every set of faults of at most two. Both must find the same, and the plugin's runs shall
be at most a third. A minimal set is written in point faults: ``down@X`` is an error at each of the
points that reach X.

``-p benchmarks.plugin`` makes pytest try everything, in place of what the plugin does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.outcome import Target, at_least, at_most, say
from ldfi.experiments.domain.campaign.kinds import Kinds
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.explore.pytest.bounds import Bounds
from ldfi.explore.pytest.loop import QUIET, Explored, ExploredVerdict, Finding
from ldfi.explore.pytest.run import Execute, Run
from ldfi.fit.protocol.faults import Fault

EXAMPLE = Path(__file__).parents[1] / "examples" / "storefront"
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


def compare(project: Path) -> tuple[list[Document], dict[str, Target]]:
    """Make a row for each test, and hold them against the targets."""
    rows = []
    for by_plugin, by_force in zip(
        explored(project), explored(project, "-p", "benchmarks.plugin"), strict=True
    ):
        rows.append(
            {
                "test": by_plugin["test"].rpartition("::")[2],
                "weaknesses": len(found(by_force)),
                "found": len(found(by_plugin) & found(by_force)),
                "made up": len(found(by_plugin) - found(by_force)),
                "runs": by_plugin["runs"],
                "all of size ≤ 2": by_force["runs"],
                "said to be": by_plugin["exhaustive"],
            }
        )
    total = {name: sum(row[name] for row in rows) for name in rows[0] if name != "test"}
    targets = {
        "weaknesses found": at_least(total["found"], total["weaknesses"]),
        "findings that are none": at_most(total["made up"], 0),
        "share of the runs that trying everything takes": at_most(
            round(total["runs"] / total["all of size ≤ 2"], 3), SHARE
        ),
    }
    return rows, targets


def main() -> int:
    """Compare, and say so."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    arguments = parser.parse_args()
    rows, targets = compare(EXAMPLE)
    return 0 if say({"tests": rows}, targets, as_json=arguments.json) else 1


if __name__ == "__main__":
    sys.exit(main())
