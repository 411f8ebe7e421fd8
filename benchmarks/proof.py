"""What the chain of runs costs the service, and what checking it costs: milliseconds of CPU.

python -m benchmarks.proof
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import delete

from ldfi.checker.document import EvidenceFile
from ldfi.checker.head import SigningKey, counts_root
from ldfi.checker.record import RunRecord
from ldfi.checker.verify import Against, verify
from ldfi.experiments.store import Database, chain
from ldfi.experiments.store.certificates import CampaignCertificate
from ldfi.experiments.store.evidence_file import evidence_file
from ldfi.experiments.store.run_counts import fill
from ldfi.experiments.store.schema import CountNodeRow, HeadRow, RunCountRow
from ldfi.lineage.digest import digest
from ldfi.lineage.span import Trace
from ldfi.testing.spans import span
from tests.checker.chain import key_pem, record, trusted

RUNS, CLASSES, SPANS = 300, 100, 30
NOW = 1_000_000.0
EMPTY: dict[str, Any] = {"language": {"faults": []}, "evidence": {"good": [], "bad": []}}


def cpu(work: Callable[[], object]) -> float:
    """Measure milliseconds of CPU."""
    began = time.process_time()
    work()
    return 1_000 * (time.process_time() - began)


def appended(database: Database, run: RunRecord) -> float:
    """Append a run as the end of an experiment does."""

    def work() -> None:
        with database.change(NOW) as change:
            name = run.request_class, run.version
            chain.append(change, name, partial(_numbered, run))

    return cpu(work)


def _numbered(run: RunRecord, number: int) -> RunRecord:
    return replace(run, number=number)


def long_lived(database: Database, class_versions: int) -> None:
    """Let there have been so many class versions."""
    with database.change(NOW) as change:
        row = change.session.get_one(HeadRow, 1)
        head = chain.head_of(change.session)
        more = {(f"GET /a/class/of/requests/{n}", 1): 1 for n in range(class_versions)}
        runs = {**head.runs, **more}
        for table in (CountNodeRow, RunCountRow):
            change.session.execute(delete(table))
        fill(change.session, runs)
        grown = replace(head, counts=counts_root(runs)).signed_by(change.keys)
        row.document = chain.written(grown)


def measured() -> Iterable[tuple[str, float]]:
    """Measure each step of a run's way into a certificate that is checked."""
    key = SigningKey(key_pem())
    database = Database("sqlite://", (key,))
    trace = Trace.of("1" * 32, [span(f"s{n}", f"s{n - 1}" if n else None) for n in range(SPANS)])
    yield (
        f"hash of a trace of {SPANS} spans",
        statistics.median(cpu(lambda: digest(trace)) for _ in range(RUNS)),
    )
    base = record(random.Random(0), [], 0, NOW)
    times = [
        appended(database, replace(base, experiment=f"e{n}", request_class=f"c{n % CLASSES}"))
        for n in range(RUNS)
    ]
    yield f"a run appended and the head signed, {CLASSES} class versions", statistics.median(times)
    yield "the same, the slowest", max(times)
    certified = [
        CampaignCertificate("benchmark", f"c{n}", base.version, EMPTY) for n in range(CLASSES)
    ]
    with database.read() as session:
        began = time.process_time()
        document = json.loads(json.dumps(evidence_file(session, certified, (key,), NOW)))
        yield f"{RUNS} runs with their proofs written", 1_000 * (time.process_time() - began)
    against = Against(trusted(key), NOW + 1)
    yield f"{RUNS} runs checked", cpu(lambda: verify(EvidenceFile.from_json(document), against))
    for many in (1_000, 10_000):
        long_lived(database, many)
        run = replace(base, experiment=f"x{many}", request_class="c1")
        yield f"a run appended, {many:,} class versions", appended(database, run)
        with database.read() as session:
            asked = cpu(partial(chain.head_of, session))
        yield f"the head read with its counts, {many:,} class versions", asked
    database.close()


if __name__ == "__main__":
    for what, milliseconds in measured():
        print(f"{what}: {milliseconds:.2f} ms")
