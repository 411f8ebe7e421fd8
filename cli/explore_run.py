"""What ``ldfi explore`` does: runs a command through our proxy, again and again."""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryFile
from typing import Any, Final
from urllib.parse import urlsplit

from ldfi.cli.terminal import console
from ldfi.error_words import system
from ldfi.errors import Invalid, InvalidScenario
from ldfi.explore.external.assertions import AnswerAssertion
from ldfi.explore.external.environment import export_interval
from ldfi.explore.external.proxy import Passed, ProxiedRun, Proxy
from ldfi.explore.external.receiver import ANY_PORT, InvalidAddress
from ldfi.explore.external.requests import as_call, root_span
from ldfi.explore.external.run_result import RunResult, until_whole
from ldfi.explore.external.session import Elsewhere
from ldfi.explore.pytest.describe_test import Document, document_of, failure_of, headline, notes
from ldfi.explore.pytest.junit import write_junit
from ldfi.explore.pytest.loop import Finding, explore
from ldfi.explore.pytest.marker import Bounds
from ldfi.explore.pytest.parallel import Abreast
from ldfi.explore.pytest.report import write_report
from ldfi.explore.pytest.run import Asked, Run
from ldfi.explore.pytest.scenarios import write_scenario
from ldfi.explore.pytest.service import service_name
from ldfi.explore.pytest.survived import Basis, SurvivedRuns
from ldfi.explore.pytest.survived_files import (
    basis_of_command,
    keep_survived,
    read_survived,
    survived_file,
)
from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.outline import Outline

SCENARIOS: Final = Path(".ldfi")
PLACE: Final = "LDFI_TARGET"
"""Where the command finds the address of our proxy."""


@dataclass(frozen=True, slots=True)
class ExploreWanted:
    """What was typed. ``fixed``: the address to receive at was asked for. ``survived_files``: a
    folder; ``code``: what services are made of, and under the empty name the test.
    ``workers``: runs at a time. ``back_off``: seconds for which exporters may keep away."""

    command: tuple[str, ...]
    target: str
    listen: str
    receive: str
    bounds: Bounds
    assertions: tuple[AnswerAssertion, ...]
    names: Mapping[str, str]
    report: Path | None
    junit: Path | None
    fixed: bool
    survived_files: Path | None
    code: Mapping[str, Sequence[str]]
    workers: int
    back_off: float


@dataclass(slots=True)
class CommandRuns:
    """Runs the command, once for each hypothesis, through a proxy that no other run goes through:
    nothing else tells of a plain request which run has sent it. ``output``: what the latest run
    printed."""

    wanted: ExploreWanted
    elsewhere: Elsewhere
    free: SimpleQueue[Proxy] = field(default_factory=SimpleQueue)
    output: str = ""

    def run(self, faults: tuple[Fault, ...]) -> Run:
        """Run it; again where spans were lost. Where no proxy is free, wait."""
        proxy = self.free.get()
        try:
            return until_whole(lambda: self._once(faults, proxy))
        finally:
            self.free.put(proxy)

    def _once(self, faults: tuple[Fault, ...], proxy: Proxy) -> tuple[Run, RunResult]:
        trace_id, root = secrets.token_hex(16), secrets.token_hex(8)
        proxied_run = ProxiedRun(trace_id, self.elsewhere.stamp(faults, self.wanted.bounds.delay))
        self.elsewhere.begin(trace_id)
        proxy.begin(proxied_run)
        start = time.time_ns()
        try:
            error = self._executed(proxy)
        finally:
            proxy.begin(None)
        passed = proxied_run.passed
        error = error or next((f"{p.sent} is not {p.wrong[0]}" for p in passed if p.wrong), "")
        service, sent = service_name(), [each.sent for each in passed]
        own = [as_call(trace_id, root, service, each) for each in sent]
        end = time.time_ns()
        own.append(root_span(trace_id, root, service, start, end, failed=bool(error)))
        shown = self.elsewhere.shown(trace_id, own, sent, faults)
        asked = _asked(passed[-1]) if passed else None
        errors = sum(each.failed for each in sent)
        problem = shown.problem or ("" if passed else self._nothing_passed(proxy))
        run = Run(
            *(not error, shown.lineage, error, asked, False, errors, problem),
            began=start / 1e9,
            ended=end / 1e9,
            died=shown.died,
        )
        return run, shown

    def _executed(self, proxy: Proxy) -> str:
        """Run the command once; returns how it failed, in one line. Its output goes to a file: what
        it leaves running in the background would hold a pipe open."""
        wanted = self.wanted
        with TemporaryFile() as output:
            try:
                done = subprocess.run(  # noqa: S603 - what the user has typed
                    list(wanted.command),
                    env=os.environ | {PLACE: proxy.url},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=wanted.bounds.time_limit,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"it took longer than {wanted.bounds.time_limit:g} s"
            except (OSError, ValueError) as error:  # ValueError: a name that no file can have
                raise Invalid(_not_run(wanted.command[0], error)) from error
            finally:
                output.seek(0)
                self.output = output.read().decode("utf-8", "replace")
        return _ended(done.returncode)

    def _nothing_passed(self, proxy: Proxy) -> str:
        return (
            f"the command sent nothing through {proxy.url}: have it ask there, and not at"
            f" {self.wanted.target} itself. It finds the address in {PLACE}"
        )


def _not_run(program: str, error: Exception) -> str:
    """Say why a program cannot be run, and the way out."""
    if not isinstance(error, OSError) or not program:
        why = "that is no name of a program"
    elif Path(program).is_dir():
        why = "it is a folder"
    elif isinstance(error, PermissionError):
        why = f"it is not a program that you may run (chmod +x {shlex.quote(program)})"
    elif error.errno == errno.ENOEXEC:
        why = "it is neither a program nor a script whose first line says what runs it (#!/bin/sh)"
    else:
        why = system(error)
    return f"{program!r} cannot be run: {why}"


def _ended(code: int) -> str:
    """Say how a command has failed; empty where it has not."""
    if code >= 0:
        return f"exit code {code}" if code else ""
    names = {each.value: each.name for each in signal.Signals}
    return f"it was killed by {names.get(-code, f'signal {-code}')}"


def _writable(*files: Path | None) -> None:
    """Raise OSError for a file that cannot be written: before an hour of runs, not after it."""
    for file in filter(None, files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.open("a").close()


def explored_by(wanted: ExploreWanted, *, quiet: bool) -> Document:
    """Explore the command, tell of it, and write what was asked for. Raises Invalid, and OSError
    where that cannot be written."""
    _writable(wanted.report, wanted.junit)
    with ExitStack() as opened:
        runs = CommandRuns(wanted, elsewhere := _receiving(wanted))
        opened.callback(elsewhere.close)
        others = f"{wanted.listen.rpartition(':')[0]}:0"
        for address in (wanted.listen, *[others] * (wanted.workers - 1)):
            proxy = Proxy(address, wanted.target, wanted.assertions)
            opened.callback(proxy.close)
            runs.free.put(proxy)
        return _explored(wanted, runs, quiet=quiet)


def _receiving(wanted: ExploreWanted) -> Elsewhere:
    def at(address: str) -> Elsewhere:
        return Elsewhere(address, export_interval(), back_off=wanted.back_off, tell=_warn)

    try:
        return at(wanted.receive)
    except InvalidAddress:
        if wanted.fixed:
            raise
        made = at(ANY_PORT)
        _warn(f"{wanted.receive} is taken: spans are received at {made.receiver.address}")
        return made


def _warn(said: str) -> None:
    console(stderr=True).print(said, style="yellow", soft_wrap=True)


def _explored(wanted: ExploreWanted, runs: CommandRuns, *, quiet: bool) -> Document:
    started, bounds = time.time(), wanted.bounds
    test = shlex.join(wanted.command)
    survived = _survived(wanted, test)

    def over() -> bool:
        return time.time() - started - runs.elsewhere.waited > bounds.time_limit

    with Abreast(runs.run, wanted.workers) as abreast:
        explored = explore(
            *(test, runs.run, bounds, over, runs.elsewhere.doubt),
            survived=survived,
            making=abreast,
        )
    if wanted.survived_files is not None and survived is not None:
        unwritten = keep_survived(survived_file(wanted.survived_files, test), survived.document())
        explored.not_kept = unwritten or explored.not_kept
    folder = SCENARIOS if wanted.report is None else wanted.report.absolute().parent

    def keep(
        finding: Finding, good: tuple[Outline, ...], bad: tuple[Outline, ...]
    ) -> tuple[str, str]:
        try:
            return str(write_scenario(folder, test, finding, good, bad, bounds)), ""
        except (OSError, InvalidScenario) as error:
            return "", str(error)

    seconds = time.time() - started
    document = document_of(test, explored, bounds, seconds, 0, keep, wanted.names)
    if wanted.report is not None:
        write_report(wanted.report, [document])
    if wanted.junit is not None:
        write_junit(wanted.junit, [document])
    if not quiet:
        _tell(document, runs.output)
    return document


def _survived(wanted: ExploreWanted, test: str) -> SurvivedRuns | None:
    """Find what the command has survived before; None where nobody keeps that."""
    if wanted.survived_files is None:
        return None
    asked = [wanted.target, *map(str, wanted.assertions)]

    def basis() -> Basis:
        return basis_of_command(wanted.command, asked, wanted.bounds, wanted.code, wanted.names)

    return SurvivedRuns(basis, read_survived(survived_file(wanted.survived_files, test)))


def _tell(document: Mapping[str, Any], output: str) -> None:
    shown = console()
    if document["verdict"] == "broken":
        shown.print(output, end="", soft_wrap=True)
    failure = failure_of(document)
    lines = [failure] if failure else [f"ldfi: {headline(document)}", *notes(document)]
    shown.print("\n".join(lines), soft_wrap=True)


def _asked(passed: Passed) -> Asked:
    url = urlsplit(passed.sent.url)
    return Asked(passed.sent.method, url.path, url.query, passed.headers, passed.body)
