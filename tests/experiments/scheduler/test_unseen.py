"""What a program's traces do not tell is told of it, by language and way; and of nobody else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from sqlalchemy import select

from ldfi.checker.solving import examine
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.injectors import NO_CONTEXT
from ldfi.experiments.domain.traffic.known_class import KnownClass
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.scheduler.engine import AT_ONCE, Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import AuditRow
from ldfi.lineage.loose_calls import Event, Figures
from ldfi.lineage.span import Span
from ldfi.lineage.unseen_calls import Gap, Unseen
from ldfi.testing.world import PROGRAM, QUICK, World
from tests.kit.lost import LANGUAGES, WAYS, Language, Way, beside, exported, seen

BOUND = 0.01


@pytest.fixture
def db() -> Iterator[Database]:
    database = Database("sqlite://")
    yield database
    database.close()


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
def test_a_lost_call_is_told_and_stays_open(db: Database, language: Language, way: Way) -> None:
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


THREAD, POOL = WAYS["a thread without the context"], WAYS["a pool, unless it runs inline"]


def lacking(known: KnownClass) -> dict[str, str]:
    document = Knowledge(known.name, Settings(), known.traffic).certificate()
    assert not examine(document["certificate"]).problems
    bounds: dict[str, dict[str, str]] = document["certificate"]["axioms"]["bounds"]
    return bounds.get("no_injector", {})


def test_a_person_says_once_that_they_are_its_calls(db: Database) -> None:
    # Given calls that run in traces of their own, within each request
    engine = watched(db, exported(LANGUAGES[0], THREAD))
    (proposal,) = engine.sightings.figures().proposals()
    assert (proposal.belongs, proposal.classes, proposal.said) == ("theirs", ("GET /",), None)
    point, known = proposal.point, of_front(engine)
    # When somebody says that they are these requests'
    engine.say(point, True, "ann", 10.0)
    # Then the lineage has them, and they count as what nobody can inject into, not as unseen
    assert point in Knowledge(known.name, Settings(), known.traffic).points
    assert {fault.partition("@")[2] for fault in lacking(known)} == {point}
    assert set(lacking(known).values()) == {NO_CONTEXT}
    assert known.traffic.unseen.gaps == ()
    # And so it is after a restart, and for as long as nobody takes it back
    again = watched(db, exported(LANGUAGES[0], THREAD))
    assert again.said == {point: True}
    assert of_front(again).traffic.taken_in == {point}
    again.say(point, None, "ben", 11.0)
    assert of_front(again).traffic.taken_in == frozenset()
    assert lacking(of_front(again)) == {}
    assert of_front(again).traffic.unseen.gaps
    with db.read() as session:
        rows = list(session.scalars(select(AuditRow).where(AuditRow.subject == point[:64])))
    assert [(row.who, row.what) for row in rows] == [
        ("ann", "loose calls: of the requests around them"),
        ("ben", "loose calls: nobody says"),
    ]


def test_what_is_said_to_be_nobodys_is_missing_nowhere(db: Database) -> None:
    engine = watched(db, exported(LANGUAGES[0], seen, every=40), beside(LANGUAGES[0], "poller"))
    engine.sightings.take_event(Event("loose", "front", "x", "front>http:GET:x/", 0, 1))
    (point,) = {each.point for each in engine.sightings.figures().proposals()} - {
        "front>http:GET:x/"
    }
    engine.say(point, False, "ann", 10.0)
    assert of_front(engine).traffic.unseen.gaps == ()
    assert of_front(engine).traffic.taken_in == frozenset()


def test_what_else_is_called_with_its_context_goes_on_counting(db: Database) -> None:
    engine = watched(db, exported(LANGUAGES[0], POOL))
    ((point, share),) = {(g.point, g.share) for g in of_front(engine).traffic.unseen.gaps}
    engine.say(point, True, "ann", 10.0)
    # A fault that is injected there misses these calls
    assert {g.share for g in of_front(engine).traffic.unseen.gaps} == {share}


@pytest.mark.parametrize("calls_first", [True, False])
def test_loose_calls_of_an_inner_service_are_no_class(db: Database, calls_first: bool) -> None:
    traces = list(exported(LANGUAGES[0], WAYS["a thread of an inner service"]))
    loose = [spans for spans in traces if len(spans) == 2]
    others = [spans for spans in traces if len(spans) > 2]
    engine = watched(db, *([loose[:-1], others, loose[-1:]] if calls_first else [others, loose]))
    assert {each.service for each in engine.catalogue.classes.values()} == {"front"}


def test_arrivals_that_a_device_or_an_edge_tells_of_came_from_outside(db: Database) -> None:
    engine = Engine(db, now=0.0)
    program = exported(LANGUAGES[0], WAYS["a client that nobody instruments"])
    for number, spans in enumerate(program):
        engine.receive_spans(spans, now=1.0)
        if number % 2 or spans[0].operation.service == "front":
            trace = spans[0].trace_id
            engine.receive_outcomes([Outcome(trace, f"d{number}", "", success=True)], now=1.0)
    engine.tick(2.0 + AT_ONCE.patience)
    engine.look()
    told = {each.calls for each in engine.sightings.figures().proposals()}
    assert told <= {60}
    for each in list(engine.sightings._roots):
        engine.sightings.reported(each)
    assert list(engine.sightings.figures().proposals()) == []


def test_traces_with_holes_are_counted_of_their_class(db: Database) -> None:
    def cut(number: int, spans: list[Span]) -> list[Span]:
        return spans[:-1] if number > 30 and number % 3 == 0 else spans

    program = list(exported(LANGUAGES[0], seen))
    engine = watched(db, (cut(number, spans) for number, spans in enumerate(program)))
    known = of_front(engine)
    (gap,) = known.traffic.unseen.gaps
    assert (gap.why, gap.calls) == ("holes", engine.drops()["trace_unanswered"])
    assert "announced more than came" in known.traffic.unseen.line


def test_services_that_believe_an_unsampled_parent_are_named(db: Database) -> None:
    engine = watched(db, exported(LANGUAGES[0], seen))
    engine.receive_report("1 python/0.2.0 front>http:* quiet>http:*", 3.0)
    assert engine.silent() == ["quiet"]


def test_a_campaign_with_a_bound_does_not_end_complete() -> None:
    gap = Gap("loose", "api", "stock", "api>http:GET:stock/*", 2, 28)
    with World.in_memory({"/a": PROGRAM}) as world:
        engine = world.engine

        def look() -> Figures:
            for known in engine.catalogue.classes.values():
                known.traffic.unseen = Unseen((gap,), 100)
            return engine.sightings.figures()

        engine.look = look  # type: ignore[method-assign]
        campaign = world.start(replace(QUICK, unseen=0.01))
        world.finish(campaign)
        assert campaign.ending is not None
        assert campaign.ending.kind == "open"
        assert "7.1 % of arrivals there (0.01 is asked for)" in campaign.reason


def test_calls_that_ran_in_no_trace_are_told_by_service_and_library(db: Database) -> None:
    engine = watched(db)
    for count in (1, 10, 100):
        engine.receive_report(f"1 python/0.2.0 api>db:* api>bare:redis:{count}|none", 3.0)
    engine.receive_report("1 python/0.2.0 x>bare:y|none x>bare:z:many|none x>unknown:q|none", 3.0)
    assert engine.bare() == {"api": {"redis": 100}}
