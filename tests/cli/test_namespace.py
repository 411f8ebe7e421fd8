"""Several teams in one service, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy import func, select

from ldfi.experiments.store import namespaces
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import AuditRow
from tests.kit.cli import ldfi
from tests.kit.service import GIVEN, client_of, service


def run(*words: str, **env: str) -> str:
    """What a command prints that has nothing to complain of."""
    done = ldfi(*words, **env)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def test_an_admin_makes_a_namespace_and_its_first_token(tmp_path: Path) -> None:
    with client_of(service(f"sqlite:///{tmp_path / 'ldfi.sqlite3'}"), None) as client:
        here = {"LDFI_URL": str(client.base_url), "LDFI_TOKEN": GIVEN["admin"]}
        words = ("namespace", "set", "checkout", "--members-per-day", "50")
        assert json.loads(run(*words, "--json", **here))["members_per_day"] == 50
        token = run("token", "create", "kim", "admin", "--namespace", "checkout", **here).strip()
        assert token.startswith("ldfi_checkout.")
        assert "50 members a day" in run("namespace", "list", **here)
        assert json.loads(run("token", "list", "--json", **here)) == []

        team = {**here, "LDFI_TOKEN": token}
        assert json.loads(run("status", "--json", **team))["day"] == {"charged": 0, "limit": 50}
        assert json.loads(run("token", "list", "--json", **team))[0]["name"] == "kim"
        # Other limits hold at once
        run("namespace", "set", "checkout", "--members-per-day", "70", **here)
        assert json.loads(run("status", "--json", **team))["day"] == {"charged": 0, "limit": 70}


def test_what_is_old_goes_in_all_of_them(database_url: str) -> None:
    default = Database(database_url)
    with default.change(1.0, "ann") as change:
        namespaces.put(change, "checkout")
    stores = (default, namespaces.opened(database_url, default, "checkout"))
    for each in stores:
        for _ in range(2):  # the newest stays, whatever its age
            with each.change(1.0, "ann") as change:
                change.audit("long ago")

    def old() -> list[int]:
        counts = []
        for each in stores:
            with each.read() as session:
                query = select(func.count()).where(AuditRow.what == "long ago")
                counts.append(session.scalar(query) or 0)
        return counts

    def pruned(*words: str) -> dict[str, int]:
        told = json.loads(run("prune", "--json", *words, LDFI_DATABASE_URL=database_url))
        return {each["what"]: each["rows"] for each in told["pruned"]}

    foreseen = pruned("--dry-run")
    assert foreseen["audit entries"] == 3  # with that of the namespace
    assert old() == [2, 2]
    assert pruned() == foreseen
    assert old() == [1, 1]
    for each in stores:
        each.close()
