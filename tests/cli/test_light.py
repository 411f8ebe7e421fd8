"""The command line imports only what a command needs, and says which extra is missing."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from ldfi.cli import exits
from ldfi.cli.commands import COMMANDS, CommandRow
from ldfi.cli.extras import EXTRAS, advice
from ldfi.cli.reproduce import reproduce
from ldfi.cli.scenario import context
from ldfi.fit.protocol.context import DEFAULT_DELAY_MS
from ldfi.scenarios.traces import QUIET
from tests.kit.cli import ldfi

ROOT = Path(__file__).parents[2]
HEAVY = (
    *("alembic", "fastapi", "httpx", "jinja2", "networkx", "opentelemetry", "prometheus_client"),
    *("psycopg", "pydantic_settings", "pysat", "kafka", "rich.live", "rich.progress", "sqlalchemy"),
    *(
        "starlette",
        "tenacity",
        "uvicorn",
        "yaml",
        "ldfi.fit.asgi",
        "ldfi.fit.clients",
        "ldfi.lineage",
        "ldfi.solver",
    ),
    *("ldfi.dashboards", "ldfi.experiments.api", "ldfi.experiments.store"),
)
LIST_ONLY = ("pydantic", "ldfi.fit", "ldfi.cli.campaign", "ldfi.cli.control")
"""What not even the list of commands needs; Typer itself brings pydantic for options."""

HELP = """
import json, sys
from ldfi.cli.main import app
for words in json.loads(sys.argv[1]):
    try:
        app([*words, "--help"], prog_name="ldfi")
    except SystemExit as done:
        assert done.code in (0, None), words
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
BLOCKER = """
import os, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name in os.environ["BLOCKED"].split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def commands() -> list[list[str]]:
    """Every command and group."""
    found: list[list[str]] = [[]]
    for row in COMMANDS:
        found.append([row.name])
        command = row.command()
        if isinstance(command, TyperGroup):
            found += [[row.name, each] for each in command.commands]
    return found


def imported(*helps: list[str]) -> set[str]:
    """The modules that a process has imported when it has shown these helps."""
    done = subprocess.run(
        [sys.executable, "-c", HELP, json.dumps(helps)], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr))


def run(*words: str, folder: Path, without: str, **env: str) -> subprocess.CompletedProcess[str]:
    """``ldfi`` in an environment where these modules are not installed."""
    (folder / "sitecustomize.py").write_text(BLOCKER)
    paths = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "ldfi.cli", *words],
        env={**os.environ, "PYTHONPATH": paths, "BLOCKED": without, **env},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def one_line(done: subprocess.CompletedProcess[str], extra: str) -> bool:
    """Whether it says what to install, and nothing else."""
    named = f"pip install 'ldfi[{extra}]'\n"
    return (done.returncode, done.stdout, done.stderr.count("\n"), done.stderr[-len(named) :]) == (
        *(2, "", 1),
        named,
    )


def test_the_list_of_commands_imports_no_command() -> None:
    assert imported([]) & {*HEAVY, *LIST_ONLY} == set()


def test_no_help_imports_what_only_the_command_itself_needs() -> None:
    """All in one process: what none of them imports, none of them imports alone."""
    assert imported(*commands()) & set(HEAVY) == set()


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_the_list_says_what_the_command_says(row: CommandRow) -> None:
    command = row.command()

    assert command.name == row.name
    assert " ".join((command.help or "").split("\n\n")[0].split()) == row.help


def test_defaults_that_are_written_down_twice_agree() -> None:
    def default(command: Any, name: str) -> Any:
        return inspect.signature(command).parameters[name].default

    assert default(reproduce, "quiet") == QUIET
    assert default(context, "delay") == DEFAULT_DELAY_MS / 1000


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    done = ldfi("campain")

    assert done.returncode == 2
    assert "campaign" in done.stderr


@pytest.mark.parametrize("words", [[], ["--help"], ["demo"], ["serve"], ["nonsense"]])
def test_a_plain_install_says_which_extra_has_the_command_line(words: list[str]) -> None:
    """Without site-packages: there is less than a plain install has."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "ldfi.cli", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == "ldfi: typer is not installed: pip install 'ldfi[service]'\n"
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.long
@pytest.mark.parametrize("module", EXTRAS["demo"])
def test_the_demo_says_that_it_is_an_extra(tmp_path: Path, module: str) -> None:
    without = "starlette fastapi" if module == "starlette" else module
    assert one_line(run("demo", folder=tmp_path, without=without), "demo")


def test_brokers_without_their_client_are_an_extra(tmp_path: Path) -> None:
    done = run("serve", "--port", "0", folder=tmp_path, without="kafka", LDFI_KAFKA="127.0.0.1:1")

    assert one_line(done, "kafka")


@pytest.mark.long
@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["config", "check", "--connect"]])
def test_a_database_without_its_driver_is_an_extra(tmp_path: Path, words: list[str]) -> None:
    url = "postgresql+psycopg://kim@127.0.0.1:1/ldfi"

    assert one_line(
        run(*words, folder=tmp_path, without="psycopg", LDFI_DATABASE_URL=url), "postgresql"
    )


@pytest.mark.long
def test_sqlite_and_a_single_process_need_neither(tmp_path: Path) -> None:
    done = run("config", "check", "--connect", folder=tmp_path, without="psycopg kafka")
    assert done.returncode == 0, done.stderr
    (tmp_path / "boot.py").write_text(
        "import asyncio\n"
        "from ldfi.experiments.api.app import create_app\n"
        "from ldfi.experiments.cluster.service import Service\n"
        "from ldfi.experiments.cluster.tokens import Tokens\n"
        "app = create_app(Service(Tokens(''), 'sqlite:///state.sqlite3'))\n"
        "async def boot():\n"
        "    async with app.router.lifespan_context(app):\n"
        "        pass\n"
        "asyncio.run(boot())\n"
    )
    booted = subprocess.run(
        [sys.executable, "boot.py"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
            "BLOCKED": "psycopg kafka",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert booted.returncode == 0, booted.stderr


def test_tests_of_any_language_are_explored_without_pytest(tmp_path: Path) -> None:
    absent = "pytest _pytest opentelemetry.sdk opentelemetry.instrumentation grpc starlette"
    explored = ("explore", "--receive", "127.0.0.1:0", "--target", "http://127.0.0.1:9", "--")

    at_once = {"OTEL_BSP_SCHEDULE_DELAY": "100"}

    done = run(*explored, "true", folder=tmp_path, without=absent, **at_once)

    assert (done.returncode, done.stderr) == (exits.INCONCLUSIVE, "")
    assert "the command sent nothing through" in done.stdout


def test_a_module_of_nobodys_extra_is_a_defect_and_stays_a_traceback(tmp_path: Path) -> None:
    assert advice("numpy") is None
    assert advice("ldfi.experiments.nothing") is None
    assert advice(None) is None

    done = run("status", folder=tmp_path, without="urllib.parse")

    assert done.returncode == exits.DEFECT  # 1 would say that a failure was found
    assert "Traceback" in done.stderr
    assert done.stderr.rstrip().endswith("please report it with the lines above")


def requirements(extra: str) -> set[str]:
    """The distributions of an extra, those of the extras within it included, bar the service's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = set[str]()
    for line in project["optional-dependencies"][extra]:
        own = re.match(r"ldfi\[(.+)\]", line)
        if own is None:
            found.add(re.split(r"[<>=;\[]", line)[0])
        else:
            inner = set(own[1].split(",")) - {"service"}
            found = found.union(*map(requirements, inner))
    return found


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_the_modules_that_it_is_said_to(extra: str) -> None:
    bringing: dict[str, set[str]] = {}
    for name in requirements(extra):
        files = {str(file) for file in distribution(name).files or ()}
        bringing[name] = {
            module
            for module in EXTRAS[extra]
            if any(
                file.startswith((f"{module.replace('.', '/')}/", f"{module}.py")) for file in files
            )
        }

    assert {name for name, modules in bringing.items() if not modules} == set()
    assert set().union(*bringing.values()) == set(EXTRAS[extra])


def test_every_row_names_something_that_can_be_called() -> None:
    assert all(callable(row.found()) or isinstance(row.found(), typer.Typer) for row in COMMANDS)
