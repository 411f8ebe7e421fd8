"""Every command that opens a database says in one sentence why it cannot, and the way out."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ldfi.experiments.store.database import Database
from tests.kit.cli import ldfi, ldfi_process

LATER = "a later version has made or changed them. Run that version"


def _of(revision: str, file: Path) -> None:
    Database(f"sqlite:///{file}").close()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    connection.close()


def _garbage(file: Path) -> None:
    file.write_bytes(bytes(range(256)) * 40)


def _folder(file: Path) -> None:
    file.mkdir()


UNUSABLE: dict[str, tuple[Callable[[Path], None], str]] = {
    "of a later version": (partial(_of, "9999"), LATER),
    "of an older version": (partial(_of, "0021"), "Make a backup, open the database once"),
    "garbage": (_garbage, "is not a database of SQLite"),
    "a folder": (_folder, "must be a file"),
}
COMMANDS = [("serve", "--port", "0"), ("prune",), ("prune", "--dry-run")]


def _refused(words: tuple[str, ...], url: str) -> tuple[int, str]:
    """Run a command; its exit code, and the last that it says. A traceback fails."""
    run = ldfi_process if words[0] == "serve" else ldfi  # which takes over the log of a process
    done = run(*words, LDFI_DATABASE_URL=url, LDFI_TOKENS="admin:0123456789abcdef-of-nobody")
    assert "Traceback" not in done.stderr
    (said,) = (line for line in done.stderr.splitlines() if " ldfi INFO " not in line)
    return done.returncode, said


@pytest.mark.parametrize("what", UNUSABLE)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_file_that_cannot_be_used(tmp_path: Path, words: tuple[str, ...], what: str) -> None:
    make, said = UNUSABLE[what]
    make(tmp_path / "ldfi.sqlite3")

    code, error = _refused(words, f"sqlite:///{tmp_path / 'ldfi.sqlite3'}")

    assert code == 2
    if what != "a folder" or words == ("serve", "--port", "0"):
        assert said in error
    else:  # prune makes none
        assert "there is no database at" in error


@pytest.mark.parametrize("words", [*COMMANDS, ("config", "check", "--connect")], ids=" ".join)
def test_a_server_that_is_away(words: tuple[str, ...]) -> None:
    code, error = _refused(words, "postgresql+psycopg://kim:very-secret@127.0.0.1:1/ldfi")
    assert code == 4
    assert "no database at postgresql+psycopg://kim:***@127.0.0.1:1/ldfi" in error
    assert "very-secret" not in error


def test_a_second_process_on_one_file(tmp_path: Path) -> None:
    lock = os.open(tmp_path / "ldfi.sqlite3.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        code, error = _refused(COMMANDS[0], f"sqlite:///{tmp_path / 'ldfi.sqlite3'}")
    finally:
        os.close(lock)
    assert code == 2
    assert "another process holds" in error
    assert "PostgreSQL, which several processes can share" in error


def test_a_lock_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "ldfi.sqlite3.lock").mkdir()
    code, error = _refused(COMMANDS[0], f"sqlite:///{tmp_path / 'ldfi.sqlite3'}")
    assert code == 2
    assert "this user must be able to write to it" in error
