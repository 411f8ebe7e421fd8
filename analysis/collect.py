"""From files to shapes: everything that can be read is read, everything else is accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ldfi.analysis.outcomes import Told, read_outcomes
from ldfi.lineage.assembly import Assembler
from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.lineage import learn
from ldfi.lineage.loose_calls import Sightings
from ldfi.lineage.packed_spans import Packed
from ldfi.lineage.readers.files import read_file
from ldfi.lineage.shapes import Shapes
from ldfi.lineage.span import Trace

OPEN_TRACES = 100_000
"""Traces that may be open at once. Files are not sorted by trace, so many are."""

PATIENCE = 500_000
"""Spans that may come between two of one trace."""

Progress = Callable[[Path, int], None]
"""Called now and then with the file being read and the number of spans read so far."""


@dataclass(slots=True)
class Collected:
    """What was read, and what was not."""

    shapes: Shapes = field(default_factory=Shapes)
    holed: Shapes = field(default_factory=Shapes)
    """Traces with gaps: their supports may be too small to be evidence."""
    spans: int = 0
    traces: int = 0
    outcomes: int = 0
    """Requests of which somebody wrote down how they ended."""
    files: dict[str, int] = field(default_factory=dict)
    """Spans by file, of those that were read."""
    unread: dict[str, str] = field(default_factory=dict)
    """File → why it, or the rest of it, could not be read."""
    sightings: Sightings = field(default_factory=lambda: Sightings(lambda _, service: service))
    """What runs within what, by the service that requests enter."""
    foreign: Counter[str] = field(default_factory=Counter)
    """Service → requests there that name a parent which is nowhere."""
    rejoined: Counter[str] = field(default_factory=Counter)
    """Service → requests in which its spans had lost their parents, and got them back."""
    parentless: Counter[str] = field(default_factory=Counter)
    """Service → requests in which they did not."""
    skipped: Counter[str] = field(default_factory=Counter)
    """What was read but could not be used, by reason."""
    timeless: int = 0
    """Spans that do not say when they began."""
    second_parents: int = 0
    """Spans that name another parent in the same trace."""

    def note(self, trace: Trace) -> None:
        """Count what a trace does not say, and what of it is not followed."""
        spans = trace.spans
        if isinstance(spans, Packed):
            return  # the extension keeps only spans of which there is nothing to say
        self.timeless += sum(not span.start for span in spans)
        self.second_parents += sum(
            any(there == trace.trace_id for there, _ in span.links)
            for span in spans
            if not span.operation.serves and span.operation.kind != "consumer"
        )


def collect(paths: Iterable[Path], progress: Progress | None = None) -> Collected:
    """Read files and folders. Never raises for their contents; OSError only for missing ones."""
    result = Collected()
    told: dict[str, Told] = {}
    files = list(_files(paths))
    for path in files:
        try:
            told |= read_outcomes(path)
        except (ValueError, OSError, EOFError):
            continue
        result.files[str(path)] = 0
    assembler = Assembler(PATIENCE, 4 * PATIENCE, OPEN_TRACES, 50_000)
    for path in files:
        if str(path) not in result.files:
            _read(path, assembler, result, told, progress)
    _learn(assembler.flush(), result, told)
    result.outcomes = len(told)
    result.skipped += Counter()  # what was never counted is not shown
    result.skipped.update({f"{reason} span": n for reason, n in assembler.dropped.items() if n})
    kept = result.skipped.pop("kept", 0)
    duplicates = result.spans - kept - assembler.dropped.total()
    if duplicates:
        result.skipped["duplicate span"] = duplicates
    return result


def _names_a_stranger(trace: Trace) -> bool:
    """Return whether the outermost span of a request names a parent that has not come."""
    if isinstance(trace.spans, Packed):
        return False
    known = {span.span_id for span in trace.spans}
    outermost = [span for span in trace.spans if span.parent_id not in known]
    return (
        len(outermost) == 1 and outermost[0].parent_id is not None and outermost[0].operation.serves
    )


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.is_file() and p.name[0] != ".")
        else:
            path.stat()
            yield path


def _read(
    path: Path,
    assembler: Assembler,
    result: Collected,
    told: dict[str, Told],
    progress: Progress | None,
) -> None:
    before = result.spans
    try:
        for batch in read_file(path):
            result.spans += len(batch.spans)
            if batch.rejected:
                result.skipped["span without usable ids"] += batch.rejected
            assembler.add(batch.spans, result.spans)
            _learn(assembler.pop(result.spans), result, told)
            if progress is not None:
                progress(path, result.spans)
    except UnreadableTraces as error:
        result.unread[str(path)] = error.reason
    if result.spans > before or str(path) not in result.unread:
        result.files[str(path)] = result.spans - before


def _learn(traces: Iterable[Trace], result: Collected, told: dict[str, Told]) -> None:
    for trace in traces:
        result.traces += 1
        result.skipped["kept"] += len(trace.spans)
        run = learn(trace)
        if run is None:
            result.skipped["trace without a root"] += 1
            continue
        if run.is_report:
            result.skipped["request that exports telemetry"] += not run.reach
            continue
        result.sightings.take(run, reported=run.trace_id in told)
        result.foreign[run.service] += _names_a_stranger(trace)
        result.rejoined.update(run.rejoined)
        result.parentless.update(run.parentless)
        result.note(trace)
        if run.strangers:
            result.skipped["span of another request in the same trace"] += run.strangers
        outcome = told.get(run.trace_id, Told(None, frozenset()))
        shapes = result.holed if run.orphans else result.shapes
        shapes.add(run, outcome.success, outcome.faults)
