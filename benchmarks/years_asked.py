"""What is asked of a database that is years old, and how long each statement takes.

For :mod:`benchmarks.years`: a start, ticks, every page and every list of the API that somebody
would open, over a real socket.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import httpx
from sqlalchemy import Engine as Connections
from sqlalchemy import event, select

from ldfi.experiments.api.app import create_app
from ldfi.experiments.cluster.service import Service
from ldfi.experiments.cluster.tokens import Tokens
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import CampaignRow, ClassRow, ExperimentRow, FindingRow
from ldfi.testing.serving import served

TOKEN: Final = "admin-of-the-benchmark"  # noqa: S105 - it opens nothing but this
AGAIN: Final = 3
"""How often what reads is asked again, to its last row: the quickest counts, for the machine may
have had other things to do."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A ``statement``, for ``what`` it was asked, and its milliseconds."""

    what: str
    statement: str
    milliseconds: float


@dataclass(slots=True)
class Watch:
    """Times the statements of this process, whoever sends them. ``what``: what goes on."""

    what: str = ""
    writes: list[Asked] = field(default_factory=list)
    reads: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _began: dict[Any, float] = field(default_factory=dict)

    def before(self, _c: Any, cursor: Any, _s: str, *_: Any) -> None:
        """Note that a statement begins."""
        self._began[cursor] = time.perf_counter()

    def after(
        self, _c: Any, cursor: Any, statement: str, parameters: Any, _x: Any, many: bool
    ) -> None:
        """Note that it is done; what reads has its rows still to come."""
        took = 1_000 * (time.perf_counter() - self._began.pop(cursor, time.perf_counter()))
        if statement.startswith("SELECT") and not many:
            self.reads.setdefault(f"{statement} {parameters}", (self.what, (statement, parameters)))
        elif statement != "BEGIN":  # which waits for a connection, and asks nothing
            self.writes.append(Asked(self.what, _short(statement), took))

    def slowest(self, database: Database) -> dict[str, Asked]:
        """Give, by what went on, the slowest statement of it. What reads is asked again, once more
        for all of its rows."""
        found: dict[str, Asked] = {}
        for each in (*self.writes, *self._again(database)):
            if each.what not in found or found[each.what].milliseconds < each.milliseconds:
                found[each.what] = each
        return found

    def _again(self, database: Database) -> Iterator[Asked]:
        connection = database.engine.raw_connection()
        try:
            cursor = connection.cursor()
            for what, (statement, parameters) in self.reads.values():
                times = []
                for _ in range(AGAIN):
                    began = time.perf_counter()
                    cursor.execute(statement, parameters)
                    cursor.fetchall()
                    times.append(time.perf_counter() - began)
                yield Asked(what, _short(statement), 1_000 * min(times))
        finally:
            connection.close()


@contextmanager
def watched() -> Iterator[Watch]:
    """Time statements for as long as the block lasts."""
    watch = Watch()
    event.listen(Connections, "before_cursor_execute", watch.before)
    event.listen(Connections, "after_cursor_execute", watch.after)
    try:
        yield watch
    finally:
        event.remove(Connections, "before_cursor_execute", watch.before)
        event.remove(Connections, "after_cursor_execute", watch.after)


def visit(url: str, watch: Watch) -> dict[str, float]:
    """Serve the database and open everything; how many seconds each page took."""
    app = create_app(Service(tokens=Tokens(f"admin:{TOKEN}"), database=url))
    took: dict[str, float] = {}
    with served(app) as at, httpx.Client(base_url=at, trust_env=False, timeout=120) as client:
        _log_in(client)
        for what, path in places(url).items():
            watch.what = what
            began = time.perf_counter()
            answer = client.get(path)
            took[what] = time.perf_counter() - began
            if answer.status_code != 200:
                raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:300]}")
        watch.what = "ticks"
        time.sleep(2.0)
    return took


def _log_in(client: httpx.Client) -> None:
    """Log a browser in."""
    form = client.get("/login").text
    found = re.search(r'name="(\w*csrf\w*)"\s+value="([^"]+)"', form)
    fields = {} if found is None else {found[1]: found[2]}
    client.post("/login", data={"token": TOKEN, **fields})
    client.headers["authorization"] = f"Bearer {TOKEN}"


def places(url: str) -> Mapping[str, str]:
    """List what people open, and what programs ask for."""
    database = Database(url)
    with database.read() as session:
        names = session.scalars(select(ClassRow.name).order_by(ClassRow.name)).all()
        campaign = session.scalars(select(CampaignRow.id)).first()
        finding = session.scalars(select(FindingRow.id).order_by(FindingRow.id)).first()
        row = ExperimentRow
        oldest, newest = (
            session.scalars(select(row.id).order_by(by).limit(1)).one()
            for by in (row.ended_at, row.ended_at.desc())
        )
    database.close()
    of = quote(names[-1], safe="")
    pages = {
        "now": "/",
        "was it us": "/was-it-us",
        "classes": "/classes",
        "class": f"/classes/{of}",
        "experiments": "/experiments",
        "experiments of a class": f"/experiments?request_class={of}",
        "experiments that hurt": "/experiments?verdict=harmful",
        "newest experiment": f"/experiments/{newest}",
        "oldest experiment": f"/experiments/{oldest}",
        "findings": "/findings",
        "finding": f"/findings/{finding}",
        "certificates": "/certificates",
        "certificate": f"/certificates/{campaign}",
        "campaigns": "/campaigns",
        "campaign": f"/campaigns/{campaign}",
        "calendar": "/calendar",
        "map": "/map",
        "maintenance": "/maintenance",
        "audit": "/audit",
        "tokens": "/tokens",
    }
    lists = {
        "experiments": "/experiments",
        "experiments that hurt": "/experiments?verdict=harmful",
        "campaigns": "/campaigns",
        "campaign": f"/campaigns/{campaign}",
        "experiments of a campaign": f"/campaigns/{campaign}/experiments",
        "certificates": f"/campaigns/{campaign}/certificates",
        "evidence": f"/campaigns/{campaign}/evidence",
        "findings": "/findings",
        "finding": f"/findings/{finding}",
        "classes": "/classes",
        "audit": "/audit",
        "head": "/head",
        "status": "/status",
        "whatif": "/whatif?down=billing",
        "gate": "/maintenance/gate?down=billing",
        "maintenance": "/maintenance",
        "replays": "/replays/runs",
    }
    return {
        **{f"page {name}": path for name, path in pages.items()},
        **{f"API {name}": f"/api/v1{path}" for name, path in lists.items()},
        "metrics": "/metrics",
    }


def _short(statement: str) -> str:
    return " ".join(statement.split())[:2_000]
