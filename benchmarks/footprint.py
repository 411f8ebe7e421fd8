"""``python -m benchmarks.footprint [--json]``: what an installation weighs, and a help costs.

The wheel is built and installed with pip into fresh virtual environments, from the package index,
as a user would.

- *Weight*: the sum of the sizes of all files in site-packages, compiled bytecode included, less
  what was there before the installation (pip and, up to Python 3.11, setuptools). 1 MB is a million
  bytes.
- *Help*: user and system CPU time of ``ldfi --help`` and of every command's ``--help``, as a
  multiple of what it costs in a bare Typer program with the same commands, none of which has an
  option. Both run in turn in the same environment, their bytecode cached; medians of the rounds
  that fit into the time, the bare program's over all its commands.

An installation that does nothing would be light: so every help must show its usage, ``ldfi config
check`` must find the configuration valid, and a plain install must say what is missing.
"""

from __future__ import annotations

import argparse
import os
import resource
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from typer.core import TyperGroup

from benchmarks.outcome import Row, Target, at_least, at_most, say
from ldfi.cli.commands import COMMANDS

ROOT: Final = Path(__file__).parents[1]
SECONDS: Final = 150.0
"""For measuring helps; the first round is finished in any case."""

ROUNDS: Final = 3
ONE_IN: Final = 3
"""Of so many helps of ours, one is followed by the bare program's."""

PIP: Final = ("--quiet", "--disable-pip-version-check", "--no-input")
Words = tuple[str, ...]

BARE = """
import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
"""
GROUP = """
{group} = typer.Typer(no_args_is_help=True, help="{help}")
app.add_typer({group}, name="{group}")
"""
COMMAND = '''
@{app}.command("{name}")
def {function}() -> None:
    """{help}"""
'''


@dataclass(frozen=True)
class Environment:
    """A fresh virtual environment, and what its site-packages weighed before anything was in it."""

    folder: Path
    before: float

    @classmethod
    def made(cls, folder: Path) -> Environment:
        """Make one."""
        _do(sys.executable, "-m", "venv", str(folder))
        made = cls(folder, 0.0)
        return replace(made, before=weight(made.packages))

    @property
    def packages(self) -> Path:
        """Its site-packages."""
        return next((self.folder / "lib").glob("python*/site-packages"))

    @property
    def added(self) -> float:
        """Megabytes that have been added since."""
        return weight(self.packages) - self.before

    def program(self, name: str) -> str:
        """Return the path of one of its programs."""
        return str(self.folder / "bin" / name)

    def install(self, requirement: str) -> None:
        """Install something with its own pip."""
        _do(self.program("python"), "-m", "pip", "install", *PIP, requirement)


def weight(folder: Path) -> float:
    """Sum up the megabytes of all files in a folder."""
    found = (each.lstat() for each in folder.rglob("*"))
    return sum(each.st_size for each in found if stat.S_ISREG(each.st_mode)) / 1e6


def environment() -> dict[str, str]:
    """Pass on the variables of whoever asks, without those that would lead to other code."""
    leading = ("PYTHON", "VIRTUAL_ENV", "LDFI_", "FIT_")
    return {name: text for name, text in os.environ.items() if not name.startswith(leading)}


def _do(*words: str) -> None:
    subprocess.run(words, check=True, env=environment(), stdout=sys.stderr)


def commands() -> dict[Words, list[str]]:
    """Every command of ``ldfi`` by its words; of a group, the names of its commands."""
    found: dict[Words, list[str]] = {}
    for row in COMMANDS:
        command = row.command()
        inner = list(command.commands) if isinstance(command, TyperGroup) else []
        found[row.name,] = inner
        found |= {(row.name, each): [] for each in inner}
    return found


def bare(folder: Path) -> Path:
    """Write a program with the same commands, its code in a module as an installed one's is."""
    code = BARE
    for words, inner in commands().items():
        name, app = words[-1], words[0] if len(words) > 1 else "app"
        told = "One of as many commands."
        if inner:
            code += GROUP.format(group=name, help=told)
        else:
            function = "_".join((*words, "command")).replace("-", "_")
            code += COMMAND.format(app=app, name=name, function=function, help=told)
    (folder / "bare_program.py").write_text(code)
    script = folder / "bare.py"
    script.write_text("from bare_program import app\n\napp()\n")
    return script


def cpu(*words: str) -> float:
    """Seconds of CPU time that a program takes to show its help. Raises where it shows none."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*words, "--help"], env=environment(), capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Usage" in done.stdout, words
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


@dataclass
class Helps:
    """Seconds of CPU time of each help, of ours and of the bare program, round by round."""

    ours: dict[Words, list[float]] = field(default_factory=dict)
    bare: dict[Words, list[float]] = field(default_factory=dict)

    def measure(self, environment: Environment, script: Path) -> None:
        """Measure in rounds, as long as there is time."""
        python, ldfi = environment.program("python"), environment.program("ldfi")
        cpu(ldfi), cpu(python, str(script))
        every, end = [(), *commands()], time.monotonic() + SECONDS
        for number, words in enumerate(every * ROUNDS):
            if number >= len(every) and time.monotonic() > end:
                return
            if not words or number % ONE_IN == 0:
                self.bare.setdefault(words, []).append(cpu(python, str(script), *words))
            self.ours.setdefault(words, []).append(cpu(ldfi, *words))

    @property
    def of_bare_command(self) -> float:
        """Return the cost of a command's help in the bare program."""
        return median(each for words, all_ in self.bare.items() if words for each in all_)

    def ratio(self, words: Words) -> float:
        """Return what a help of ours costs, as a multiple of the bare program's."""
        there = self.of_bare_command if words else median(self.bare[()])
        return median(self.ours[words]) / there

    def rows(self) -> list[Row]:
        """Each help, the most expensive first."""
        return [
            {
                "help": " ".join(("ldfi", *words)),
                "cpu_ms": round(1000 * median(self.ours[words])),
                "ratio": round(self.ratio(words), 2),
            }
            for words in sorted(self.ours, key=self.ratio, reverse=True)
        ]


def answers(plain: Environment, demo: Environment) -> int:
    """Return how many of two things hold: a plain install says what is missing, the other one
    works."""
    refused = subprocess.run(
        [plain.program("ldfi")], env=environment(), capture_output=True, text=True, check=False
    )
    said = "ldfi: typer is not installed: pip install 'ldfi[service]'\n"
    works = subprocess.run(
        [demo.program("ldfi"), "config", "check", "--json"],
        env=environment(),
        capture_output=True,
        check=False,
    )
    return ((refused.returncode, refused.stderr) == (2, said)) + (works.returncode == 0)


def measured(folder: Path) -> tuple[dict[str, list[Row]], dict[str, Target]]:
    """Build, install, measure: the tables and the targets."""
    _do(
        *(sys.executable, "-m", "pip", "wheel", *PIP, "--no-deps"),
        *("--wheel-dir", str(folder / "wheel"), str(ROOT)),
    )
    wheel = next((folder / "wheel").glob("*.whl"))
    plain, demo = (Environment.made(folder / name) for name in ("plain", "demo"))
    plain.install(str(wheel))
    demo.install(f"{wheel}[demo]")
    weights = {"ldfi": plain.added, "ldfi[demo]": demo.added}
    helps = Helps()
    helps.measure(demo, bare(folder))
    worst = max(helps.ratio(words) for words in helps.ours if words)
    tables: dict[str, list[Row]] = {
        "weights": [{"of": name, "megabytes": round(each, 2)} for name, each in weights.items()],
        "helps": helps.rows(),
        "bare": [
            {"help": "list", "cpu_ms": round(1000 * median(helps.bare[()]))},
            {"help": "command", "cpu_ms": round(1000 * helps.of_bare_command)},
        ],
        "rounds": [{"rounds": len(helps.ours[()]), "helps": len(helps.ours)}],
    }
    return tables, targets(weights, helps.ratio(()), worst, answers(plain, demo))


def targets(
    weights: Mapping[str, float], listing: float, worst: float, right: int
) -> dict[str, Target]:
    """List what is promised."""
    return {
        "megabytes of ldfi": at_most(round(weights["ldfi"], 2), 8.0),
        "megabytes of ldfi[demo]": at_most(round(weights["ldfi[demo]"], 1), 150.0),
        "ldfi --help, multiple of a bare program": at_most(round(listing, 2), 2.0),
        "worst --help of a command, multiple of a bare program": at_most(round(worst, 2), 2.0),
        "installations that do what they should": at_least(right, 2),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="what an installation weighs")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="ldfi-footprint-") as folder:
        tables, promised = measured(Path(folder))
    sys.exit(0 if say(tables, promised, as_json=given.json) else 1)


if __name__ == "__main__":
    main()
