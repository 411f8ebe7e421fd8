"""Mutants that the tests of a base revision kill: do the tiers of the working tree kill them, too?

    python -m benchmarks.mutants record                 # once, for hours; goes on where it was
    python -m benchmarks.mutants --json                 # the draw
    python -m benchmarks.mutants --rooms solver,proof   # a part, with the tests of these rooms

Small faults (:mod:`benchmarks.mutations`) are planted, one at a time, in modules that are the same
in the base revision and in the working tree, on lines that the tests of the base revision run. Only
test files that run the line are tried, the nearest first, until one fails or ``--seconds`` of
recorded time are spent. A failure counts if the same test passes without the mutant. A test file
that is the same in both revisions, and of which a tier leaves nothing out, is not run twice.

Everything done is kept in ``--keep``: recordings and results are done anew only where a test file
that they are about has changed. Needs the extra ``bench``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.mutations import Mutant, drawn, mutations
from benchmarks.outcome import Row, Target, at_least, say
from benchmarks.pieces import carried_out

ROOMS: Mapping[str, tuple[str, ...]] = {
    "fit": ("fit",),
    "lineage": ("lineage",),
    "solver": ("solver",),
    "checker": ("checker",),
    **{n: (f"experiments/{n}",) for n in ("domain", "scheduler", "store", "streams", "api")},
    "experiments": ("experiments",),  # the rest of them
    **{n: (n,) for n in ("analysis", "scenarios", "explore", "cli")},
    "dashboards": ("dashboards",),
    "demo": ("demo", "testing"),
}
LEFT_OUT = ("servers", "languages", "long")
"""Marks of tests that ``make test`` leaves out."""
MEMORY = 4 << 30
"""Bytes that a process of the tests may have: a mutant may ask for more without end."""
NO_TESTS = 5
"""pytest's exit status if it selected none."""


@dataclass(frozen=True)
class File:
    """A test file, and what distinguishes its content."""

    path: str
    digest: str


Timed = tuple[File, float]
"""A test file, and how many seconds it took when it was recorded."""


@dataclass(frozen=True)
class Recorded:
    """What the tests of a file run: of each module the bits of its lines' numbers."""

    file: File
    passed: bool
    seconds: float
    lines: Mapping[str, int]


@dataclass(frozen=True)
class Trial:
    """A mutant and the test files that run its line, nearest first, with recorded seconds."""

    mutant: Mutant
    now: tuple[Timed, ...]
    base: tuple[Timed, ...]
    whole: tuple[str, ...]
    """Test files that are the same in both revisions and that the tiers run entirely."""
    tiers: tuple[str, str]
    seconds: float


@dataclass(frozen=True)
class Killed:
    """Names of the tests that killed a mutant; empty if none did."""

    mutant: Mutant
    test: str
    servers: str
    base: str


def room_of(path: str) -> str | None:
    """Return the room that a module belongs to, or a test file without its ``tests/``."""
    fits = [(len(f), room) for room, fs in ROOMS.items() for f in fs if path.startswith(f + "/")]
    return max(fits)[1] if fits else None


def exported(revision: str, to: Path) -> Path:
    """Write the files of a revision, or of the working tree if it is empty, into a folder."""
    if revision:
        packed = to.with_suffix(".tar")
        subprocess.run(["git", "archive", "-o", packed, revision], check=True)  # noqa: S607
        shutil.unpack_archive(packed, to, filter="tar")
    else:
        listed = ["git", "ls-files", "-zco", "--exclude-standard"]
        for name in subprocess.check_output(listed, text=True).split("\0"):
            if name and os.path.lexists(name):
                (to / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(name, to / name, follow_symlinks=False)
    folders = [to / folder for room in ROOMS.values() for folder in room]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *folders], check=True)
    return to


def pytest(tree: Path, *arguments: str, limit: float, config: str = "") -> int | None:
    """Return the exit status of pytest in a tree; None if it took longer than so many seconds."""
    limited = ["prlimit", f"--data={MEMORY}"]
    command = [*limited, sys.executable, "-m", "pytest", "--tb=no", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tree), "COVERAGE_PROCESS_START": config}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=tree, env=environment, stdout=quiet, stderr=quiet, start_new_session=True
    )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):  # servers that its tests started
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def record(tree: Path, file: File) -> Recorded:
    """Run a test file; return what it runs, in processes that it starts as well."""
    from coverage import CoverageData
    from coverage.exceptions import CoverageException

    with TemporaryDirectory() as folder:
        config = Path(folder, "coverage.ini")
        included = "".join(f"\n  {tree}/{each}/*" for room in ROOMS.values() for each in room)
        config.write_text(
            f"[run]\nparallel = true\ndata_file = {folder}/data\ninclude ={included}\n"
            "disable_warnings = no-data-collected,module-not-measured,already-imported\n"
        )
        begin = time.monotonic()
        arguments = "-p", "no:cacheprovider", file.path
        status = pytest(tree, *arguments, limit=3600.0, config=str(config))
        seconds = round(time.monotonic() - begin, 1)
        lines: dict[str, int] = {}
        for each in Path(folder).glob("data.*"):
            with suppress(CoverageException):  # of a process that was killed as it wrote
                data = CoverageData(str(each))
                data.read()
                for measured in data.measured_files():
                    name = str(Path(measured).relative_to(tree))
                    bits = sum(1 << line for line in data.lines(measured) or ())
                    lines[name] = lines.get(name, 0) | bits
    return Recorded(file, status in {0, NO_TESTS}, seconds, lines)


def tests_of(tree: Path, rooms: Iterable[str]) -> list[File]:
    """Return the test files of some rooms; all there are if no room is given."""
    paths = sorted(str(each.relative_to(tree)) for each in (tree / "tests").rglob("test_*.py"))
    wanted = set(rooms)
    return [
        File(path, hashlib.sha256((tree / path).read_bytes()).hexdigest()[:16])
        for path in paths
        if not wanted or room_of(path.removeprefix("tests/")) in wanted
    ]


def killer(mutated: Path, clean: Path, files: Sequence[Timed], marks: str, seconds: float) -> str:
    """Return the first test that fails with the mutant and passes without; empty if none does."""
    left, begin, paths = seconds, 0, list[str]()
    for file, taken in files:
        if taken <= left:
            paths.append(file.path)
            left -= taken
    while begin < len(paths):  # collecting takes long, too: one file, two more, four more
        some, begin = paths[begin : 2 * begin + 1], 2 * begin + 1
        if found := _killer(mutated, clean, some, marks, 300.0 + 2 * seconds):
            return found
    return ""


def _killer(mutated: Path, clean: Path, paths: list[str], marks: str, limit: float) -> str:
    unsure: list[str] = []
    while True:
        selected = ["-m", marks, *(f"--deselect={each}" for each in unsure), *paths]
        status = pytest(mutated, "-x", *selected, limit=limit)
        if status in {0, NO_TESTS}:
            return ""
        kept = mutated / ".pytest_cache/v/cache/lastfailed"
        failed = json.loads(kept.read_text()) if status is not None and kept.exists() else {}
        new = sorted(set(failed) - set(unsure))
        if pytest(clean, "-p", "no:cacheprovider", *(new or selected), limit=limit) == 0:
            return new[0] if new else f"{paths[0]}: status {status}"
        if not new:
            return ""
        unsure += new


@contextmanager
def planted(tree: Path, mutant: Mutant) -> Iterator[Path]:
    """Provide a copy of a tree with the mutant in it."""
    with TemporaryDirectory() as folder:
        stale = shutil.ignore_patterns(".pytest_cache")  # would say what failed in the tree itself
        copy = shutil.copytree(tree, Path(folder, "tree"), symlinks=True, ignore=stale)
        module = copy / mutant.module
        module.write_text(mutant.mutation.applied(module.read_text()))
        # as old as its source by the second and as long, it would be taken for compiled from it
        Path(cache_from_source(str(module))).unlink(missing_ok=True)
        yield copy


def tried(now: Path, base: Path, trial: Trial) -> Killed:
    """Run the tiers of the working tree against a mutant, and the base revision where needed."""
    mutant, (marks, marks_of_servers) = trial.mutant, trial.tiers
    with planted(now, mutant) as tree:
        servers = test = killer(tree, now, trial.now, marks, trial.seconds)
        if not test and marks_of_servers:
            servers = killer(tree, now, trial.now, marks_of_servers, trial.seconds)
    at = servers.partition(":")[0]
    alike = {file for file, _ in trial.now} & {file for file, _ in trial.base}
    if at in {file.path for file in alike}:
        return Killed(mutant, test, servers, servers)
    left = [each for each in trial.base if each[0].path not in trial.whole]
    left.sort(key=lambda each: each[0].path != at)
    with planted(base, mutant) as tree:
        return Killed(mutant, test, servers, killer(tree, base, left, "", trial.seconds))


def covering(recorded: Iterable[Recorded], mutant: Mutant) -> tuple[Timed, ...]:
    """Return the test files that run the line of a mutant, the nearest and shortest first."""
    module, line = mutant.module, mutant.mutation.line
    found = [each for each in recorded if each.lines.get(module, 0) >> line & 1]

    def distance(each: Recorded) -> tuple[bool, int, float]:
        path = each.file.path.removeprefix("tests/")
        shared = len(Path(os.path.commonpath([path, module])).parts)
        return Path(path).stem != f"test_{Path(module).stem}", -shared, each.seconds

    return tuple((each.file, each.seconds) for each in sorted(found, key=distance))


def candidates(now: Path, base: Path, recorded: Iterable[Recorded]) -> list[Mutant]:
    """Return the mutants of modules that have not changed, on lines that tests run."""
    covered: dict[str, int] = {}
    for each in recorded:
        for module, lines in each.lines.items():
            covered[module] = covered.get(module, 0) | lines
    found: list[Mutant] = []
    for module, lines in sorted(covered.items()):
        here, room = now / module, room_of(module)
        if room and here.exists() and here.read_bytes() == (base / module).read_bytes():
            of_it = mutations(here.read_text())
            found += [Mutant(room, module, each) for each in of_it if lines >> each.line & 1]
    return found


def tiers_of(tree: Path, files: Iterable[File]) -> tuple[tuple[str, str], set[str]]:
    """Return what each tier selects, and those of the files of which neither runs everything.

    Marks that the tree does not have yet are left out of it, as pytest knows no others.
    """

    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", "pytest", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        ended = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, check=False
        )
        return ended.stdout

    registered = said("--markers")
    known = [mark for mark in LEFT_OUT if f"@pytest.mark.{mark}:" in registered]
    later = [mark for mark in known if mark != "servers"]
    test = " and ".join(f"not {mark}" for mark in known)
    servers = " and ".join(["servers", *(f"not {mark}" for mark in later)])
    paths = [file.path for file in files]
    listed = said("--collect-only", "-q", "-m", " or ".join(later), *paths) if later else ""
    return (
        (test, servers if "servers" in known else ""),
        set(re.findall(r"^tests/\S+?\.py", listed, re.M)),
    )


def trials(now: Path, base: Path, given: argparse.Namespace) -> list[Trial]:
    """Record what is not recorded yet; return the mutants that are drawn, and their tests."""
    recorded: list[list[Recorded]] = []
    for tree in (base, now):
        files = tests_of(tree, given.rooms)
        kept = given.keep / "recorded"
        recorded.append(list(carried_out(partial(record, tree), files, "recording", kept)))
    of_base, of_now = recorded
    failed = [each.file.path for each in of_base if not each.passed]
    print(f"{len(of_base)} test files, failed: {', '.join(failed) or 'none'}", file=sys.stderr)
    if given.action == "record":
        return []
    alike = {each.file for each in of_base} & {each.file for each in of_now}
    found = [m for m in candidates(now, base, of_base) if not given.rooms or m.room in given.rooms]
    mutants = drawn(found, given.count, given.seed)
    covered = {file for mutant in mutants for file, _ in covering(of_base, mutant)}
    tiers, partly = tiers_of(now, covered & alike)
    return [
        Trial(
            mutant,
            covering(of_now, mutant),
            before := covering(of_base, mutant),
            tuple(f.path for f, _ in before if f in alike and f.path not in partly),
            tiers,
            given.seconds,
        )
        for mutant in mutants
    ]


def _counts(room: str, results: Sequence[Killed]) -> dict[str, Any]:
    held = [each for each in results if each.base]
    return {
        "room": room,
        "mutants": len(results),
        "killed by the base": len(held),
        "by make test": sum(bool(each.test) for each in held),
        "with make test-servers": sum(bool(each.servers) for each in held),
    }


def _survivor(tree: Path, killed: Killed) -> Row:
    module, mutation = killed.mutant.module, killed.mutant.mutation
    before, after = mutation.shown((tree / module).read_text())
    return {
        "survives make test": f"{module}:{mutation.line}",
        "before": before,
        "after": after,
        "killed by make test-servers": killed.servers,
        "killed by the base": killed.base,
    }


def report(now: Path, results: Sequence[Killed]) -> tuple[dict[str, list[Row]], dict[str, Target]]:
    """Return a row for each room, one for each mutant that lives on, and what both come to."""
    by_room = {room: [each for each in results if each.mutant.room == room] for room in ROOMS}
    total = _counts("all", results)
    rows: list[Row] = [_counts(room, found) for room, found in by_room.items() if found]
    survivors = [_survivor(now, each) for each in results if each.base and not each.test]
    held = total["killed by the base"] or 1
    targets = {
        "make test kills, of what the base kills": at_least(total["by make test"] / held, 0.9),
        "with make test-servers": at_least(total["with make test-servers"] / held, 0.97),
    }
    return {"rooms": [*rows, total], "survivors": survivors}, targets


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", nargs="?", choices=("record",), help="only record what tests run")
    parser.add_argument("--base", default="cd739a66", help="revision with the full test suite")
    keep = "keep what is done in this folder, and go on from there"
    parser.add_argument("--keep", type=Path, default=Path("build/mutants"), help=keep)
    rooms = f"mutants and tests of these alone, with commas between them: {', '.join(ROOMS)}"
    parser.add_argument("--rooms", type=lambda text: text.split(","), default=[], help=rooms)
    parser.add_argument("--count", type=int, default=80, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=1)
    spent = "recorded seconds of the tests that are tried on a mutant, for each tier"
    parser.add_argument("--seconds", type=float, default=900.0, help=spent)
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    given = parser.parse_args()
    if unknown := set(given.rooms) - set(ROOMS):
        parser.error(f"no such room: {', '.join(sorted(unknown))}; there are {', '.join(ROOMS)}")
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        base, now = exported(given.base, root / "base"), exported("", root / "now")
        pieces = trials(now, base, given)
        if given.action == "record":
            return 0
        trying = partial(tried, now, base)
        results = list(carried_out(trying, pieces, "killing", given.keep / "killed"))
        tables, targets = report(now, results)
    return 0 if say(tables, targets, as_json=given.json) else 1


if __name__ == "__main__":
    sys.exit(main())
