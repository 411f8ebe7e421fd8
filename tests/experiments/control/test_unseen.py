"""What a program's traces do not tell is told of it, by language and way; and of nobody else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from ldfi.experiments.control.engine import AT_ONCE, Engine
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.known_class import KnownClass
from ldfi.experiments.store.database import Database
from ldfi.lineage.span import Span
from ldfi.solver.check import examine
from tests.kit.lost import LANGUAGES, WAYS, Language, Way, beside, exported, seen

BOUND = 0.01


def watched(db: Database, *programs: Iterable[list[Span]]) -> Engine:
    engine = Engine(db, now=0.0, outcomes="root")
    for program in programs:
        for spans in program:
            engine.receive_spans(spans, now=1.0)
    engine.tick(2.0 + AT_ONCE.patience)
    engine.tick(5.0 + AT_ONCE.request)
    engine.look()
    return engine


def of_front(engine: Engine) -> KnownClass:
    (known,) = (each for each in engine.catalogue.classes.values() if each.service == "front")
    return known


def open_in(known: KnownClass) -> tuple[str, ...]:
    """Say why the certificate of a class is open that has nothing left to try."""
    settings = Settings(unseen=BOUND, kinds=("error",))
    points = tuple(known.traffic.usually_called())
    document = Knowledge(known.name, settings, known.traffic, points).certificate()
    report = examine(document["certificate"])
    assert not report.problems
    return report.open


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.name)
@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_a_lost_call_is_told_and_nothing_is_complete(
    db: Database, language: Language, way: Way
) -> None:
    known = of_front(watched(db, exported(language, way)))
    figure = known.traffic.unseen
    assert figure.share > BOUND, figure
    assert "stock" in figure.line or "ads" in figure.line
    assert list(figure.advice())
    assert any("cannot be seen" in said for said in open_in(known))


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.name)
@pytest.mark.parametrize("kind", ["", "poller", "probe"])
@pytest.mark.parametrize("every", [40, 90, 130, 500, 5000])
def test_where_nothing_is_lost_nobody_is_blamed(
    db: Database, language: Language, kind: str, every: float
) -> None:
    others: Iterator[list[Span]] = beside(language, kind, every=every) if kind else iter(())
    known = of_front(watched(db, exported(language, seen, every=every), others))
    figure = known.traffic.unseen
    assert figure.share == 0.0, figure
    assert figure.calls
    if every > 100:  # else one request or another always goes on, and nobody can tell
        assert not figure.gaps
        assert open_in(known) == ()
