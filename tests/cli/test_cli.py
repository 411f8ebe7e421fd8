"""The command line, as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from ldfi.cli.commands import COMMANDS, CommandGroup
from ldfi.cli.main import app
from ldfi.cli.processes import ATTACHED
from ldfi.solver import Explorer
from tests.kit.cli import PROGRAM, ldfi

DATA = Path(__file__).parents[1] / "data"


def commands() -> list[tuple[str, ...]]:
    """Every command, group by group, as the command line itself lists them."""
    top = get_command(app)
    assert isinstance(top, CommandGroup)
    assert list(top.commands) == [row.name for row in COMMANDS]
    found: list[tuple[str, ...]] = []
    for row in COMMANDS:
        command = row.command()
        if isinstance(command, TyperGroup):
            found += [(row.name, each) for each in command.commands]
        else:
            found.append((row.name,))
    return found


def test_it_says_its_version_and_completes_commands_that_are_imported_when_called() -> None:
    assert ldfi("--version").stdout == f"ldfi {version('ldfi')}\n"
    typed = {"COMP_WORDS": "ldfi campaign sta", "COMP_CWORD": "2"}
    asked = {**os.environ, "_LDFI_COMPLETE": "complete_bash", **typed}
    script = Path(sys.executable).with_name("ldfi")
    assert subprocess.check_output([script], env=asked, text=True, timeout=60).split() == ["start"]


def test_every_command_takes_json_or_says_why_not() -> None:
    without = {words for words in commands() if "--json" not in options_of(words)}

    assert without == {
        ("serve",),  # answers nobody
        ("certificate", "show"),  # prints nothing but JSON
        ("certificate", "get"),  # neither
        ("certificate", "head"),  # neither
        ("replay", "schema"),  # neither
        ("config", "table"),  # prints Markdown
        ("scenario", "schema"),  # prints nothing but JSON
    }


def test_every_command_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    missing = [words for words in commands() if f"`ldfi {' '.join(words)}" not in page]

    assert not missing


def options_of(words: tuple[str, ...]) -> set[str]:
    (row,) = [each for each in COMMANDS if each.name == words[0]]
    command: Any = row.command()
    for word in words[1:]:
        assert isinstance(command, TyperGroup)
        command = command.commands[word]
    return {option for each in command.params for option in each.opts}


def test_a_service_that_is_not_there_is_exit_code_four() -> None:
    done = ldfi("findings", "--url", "http://127.0.0.1:9", LDFI_TOKEN="x" * 16)

    assert done.returncode == 4
    assert "ldfi serve" in done.stderr


def test_analyze_says_what_traces_rely_on() -> None:
    done = ldfi("analyze", "--json", str(DATA / "hotrod.otlp.jsonl.gz"))

    assert done.returncode == 0
    analysis = json.loads(done.stdout)
    assert analysis["spans"] > 0
    assert any("/dispatch" in str(each["predicate"]) for each in analysis["classes"])


def test_analyze_of_a_missing_file_is_usage() -> None:
    done = ldfi("analyze", "nowhere.json")

    assert done.returncode == 2
    assert "nowhere.json" in done.stderr


def test_a_certificate_is_checked_and_a_forged_one_refused(tmp_path: Path) -> None:
    explorer = Explorer(max_size=2)
    explorer.observe({"a", "b"})
    for _ in range(10):
        hypothesis = explorer.propose()
        if hypothesis is None:
            break
        failed = "a" in hypothesis
        explorer.record(
            injected=hypothesis, succeeded=not failed, support=None if failed else {"a"}
        )
    data = explorer.certificate().data
    good, forged = tmp_path / "good.json", tmp_path / "forged.json"
    good.write_text(json.dumps(data))
    forged.write_text(json.dumps({**data, "findings": []}))

    assert ldfi("certificate", "check", str(good)).returncode == 0
    assert ldfi("certificate", "check", str(forged)).returncode == 1
    assert ldfi("certificate", "check", str(tmp_path / "none.json")).returncode == 2


@pytest.mark.long
def test_an_attached_service_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    # Given a service that was started to run no longer than we do
    service = subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0", "--database", str(tmp_path / "x.sqlite3")],
        env={**os.environ, ATTACHED: "1"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with service:
        assert service.stderr is not None
        assert service.stdin is not None
        assert any(b"Admin token" in line for line in service.stderr)
        # When we go, however that may be
        service.stdin.close()
        # Then it goes as well
        assert service.wait(20) is not None
