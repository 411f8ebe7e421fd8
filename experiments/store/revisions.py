"""Which migrations the tables of a database have seen, and which there are (Alembic)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection

from ldfi.errors import Invalid

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).parent / "migrations"

BASELINE: Final = "0022"
"""The oldest revision that can be brought up to date."""

OLDER: Final = frozenset(f"{number:04}" for number in range(1, int(BASELINE)))
"""Revisions before the baseline, whose migrations this version does not have."""

LAST_WITH_OLDER: Final = "d25a07cb"
"""The last commit whose migrations lead from the first revision to the baseline."""


@cache
def newest() -> str | None:
    """Name the migration that tables which are up to date have seen last. All of them are loaded
    for it, so it is done once."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(alembic()).get_current_head()


def check_known(found: str | None) -> None:
    """Raise Invalid for tables of a revision that this version cannot bring up to date: one older
    than the baseline, or one that it does not know."""
    from alembic.script import ScriptDirectory

    if found in OLDER:
        raise Invalid(
            f"the database has tables of revision {found}, and this version of ldfi brings none up "
            f"to date that are older than {BASELINE}. Nothing was changed. Make a backup, open the "
            f"database once with the last version that has these migrations (`ldfi prune` of commit"
            f" {LAST_WITH_OLDER}), and then with this one"
        )
    known = {each.revision for each in ScriptDirectory.from_config(alembic()).walk_revisions()}
    if found is not None and found not in known:
        raise Invalid(
            f"the database has tables of revision {found}, which this version of ldfi does not know"
            f" (its newest is {newest()}): a later version has made or changed them. Run that "
            "version, or put a backup of before back"
        )


def of(connection: Connection) -> str | None:
    """Read which migration the tables have seen last; None where there are none."""
    from alembic.runtime.migration import MigrationContext

    return MigrationContext.configure(connection).get_current_revision()


def alembic() -> Config:
    """Return where the migrations are."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config
