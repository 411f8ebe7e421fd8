"""Checking a file of certificates against what somebody wants proved."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NoReturn

from ldfi.checker.__main__ import answer_of
from ldfi.checker.carried_evidence import Carried, carried
from ldfi.checker.document import FORMAT as EVIDENCE
from ldfi.checker.document import EvidenceFile
from ldfi.checker.errors import Unreadable
from ldfi.checker.solving import Report, UnreadableCertificate, examine
from ldfi.checker.verdict_meaning import Meaning, Required
from ldfi.checker.verdict_meaning import lacking as meaning_lacks
from ldfi.checker.verify import Examined, signed_whole
from ldfi.experiments.domain.traffic.patterns import matching

LARGEST = 64_000_000
"""Bytes of the largest file that is read."""
SHOWN = 4
"""Names of one kind that are shown; ``--json`` has them all."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What somebody wants proved. ``complete``: nothing is left out but what is ``protected``;
    ``required``: what verdicts have to have meant; ``keys``: the certificate has to be signed by
    one of them."""

    complete: bool = False
    max_size: int | None = None
    classes: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    required: Required = field(default_factory=Required)
    keys: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check says of one class. ``reasons``: why it is no better."""

    name: str
    verdict: Literal["complete", "open", "false", "unreadable"]
    reasons: Sequence[str] = ()
    assumed: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "request_class": self.name,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "assumed": {topic: list(each) for topic, each in self.assumed.items()},
        }


def check_all(file: Path, asked: Demand) -> list[Checked]:
    """Check the certificates of a file, those of the classes asked for if any are."""
    try:
        document = _read(file)
        items = list(_items(file.name, document))
        signatures = _Signatures.of(file, document, asked)
    except (UnreadableCertificate, Unreadable, OSError) as error:
        return [Checked(file.name, "unreadable", (str(error),))]
    return [signatures.held_against(each) for each in _checked(file, items, asked)]


def _checked(file: Path, items: list[tuple[str, Any]], asked: Demand) -> list[Checked]:
    if not items:
        return [Checked(file.name, "false", ("it holds no certificate, so nothing is proved",))]
    times = Counter(name for name, _ in items)
    found = [
        Checked(name, "false", (f"{count} certificates are about this class",))
        for name, count in times.items()
        if count > 1
    ]
    one = len(items) == 1 and items[0][0] == file.name
    for name, certificate in items:
        if one and asked.classes:
            found.append(_nameless(_verdict(name, certificate, asked)))
        elif times[name] == 1 and (not asked.classes or name in asked.classes):
            found.append(_verdict(name, certificate, asked))
    missing = () if one else dict.fromkeys(name for name in asked.classes if name not in times)
    return [
        *found,
        *(Checked(name, "open", ("there is no certificate of it",)) for name in missing),
    ]


@dataclass(frozen=True, slots=True)
class _Signatures:
    """What is known of who signed the certificates of a file: what is not so, what is lacking
    although it is asked for, and what has to be believed."""

    false: Sequence[str] = ()
    lacking: Sequence[str] = ()
    assumed: Sequence[str] = ()

    @classmethod
    def of(cls, file: Path, document: Any, asked: Demand) -> _Signatures:
        """Look at a file. Raises Unreadable or OSError where the keys cannot be read."""
        whole = isinstance(document, dict) and document.get("format") == EVIDENCE
        if not whole and asked.keys:
            return cls(lacking=("it is not signed: what `ldfi certificate get` prints is",))
        if not whole:
            return cls()
        if asked.keys:
            answer = answer_of(file, asked.keys, classes=asked.classes)
            return cls(answer.false, answer.lacking)
        answer = Examined()
        try:
            read = EvidenceFile.from_json(document)
            for each in read.classes:
                signed_whole(each, read.head, answer)
        except Unreadable:
            return cls(assumed=("what stands beside it cannot be read: see `verify`",))
        signed = read.head is not None and read.head.signatures
        by = "that its signatures are right: give --key" if signed else "nobody has signed it"
        return cls(answer.false, (), (*answer.lacking, by))

    def held_against(self, verdict: Checked) -> Checked:
        """Return a verdict that is no better than the signatures are."""
        if verdict.verdict in ("false", "unreadable"):
            return verdict
        if self.false:
            return Checked(verdict.name, "false", self.false)
        if self.lacking:
            reasons = (*verdict.reasons, *self.lacking)
            return replace(verdict, verdict="open", reasons=reasons)
        if self.assumed and verdict.assumed:
            return replace(verdict, assumed={**verdict.assumed, "signature": self.assumed})
        return verdict


def said(verdict: Checked) -> Iterator[str]:
    """Say a verdict in lines for people."""
    word = {
        "complete": "borne out, and complete",
        "open": "borne out as far as it goes, and open",
        "false": "not borne out",
        "unreadable": "cannot be checked",
    }[verdict.verdict]
    if verdict.verdict == "open" and not verdict.assumed:
        word = "open"
    yield _printable(f"{verdict.name}: {word}")
    for reason in _shortened(verdict.reasons, 2 * SHOWN):
        yield _printable(f"  {reason}")
    for topic, texts in verdict.assumed.items():
        yield _printable(f"  assumed, {topic}: {'; '.join(_shortened(texts, SHOWN))}")


def _verdict(name: str, certificate: Any, asked: Demand) -> Checked:
    try:
        report = examine(certificate)
    except UnreadableCertificate as error:
        return Checked(name, "unreadable", (str(error),))
    if report.problems:
        return Checked(name, "false", report.problems)
    try:
        proofs = carried(certificate)
    except Unreadable as error:
        return Checked(name, "unreadable", (str(error),))
    if proofs.wrong:
        return Checked(name, "false", proofs.wrong)
    meaning = Meaning.of(certificate, proofs.records)
    lacking = (
        *report.open,
        *_lacking(report, asked, proofs),
        *meaning_lacks(meaning, asked.required),
    )
    assumed = {**report.assumed, **_proofs(proofs)}
    if meaning_words := tuple(meaning.words()):
        assumed["what verdicts meant"] = meaning_words
    return Checked(name, "open" if lacking else "complete", lacking, assumed)


def _proofs(proofs: Carried) -> dict[str, tuple[str, ...]]:
    """Say how many verdicts were worked out anew, and what that leaves to be believed."""
    if not proofs.experiments:
        return {}
    return {
        "runs": (
            f"{proofs.whole} of {proofs.experiments} experiments carry what their verdicts came"
            " from, and it bears them out",
            "that they took place: see `ldfi certificate verify`",
        )
    }


def _nameless(verdict: Checked) -> Checked:
    """Doubt that a certificate by itself is about a class that was asked for."""
    if verdict.verdict in ("false", "unreadable"):
        return verdict
    reasons = (*verdict.reasons, "it does not say which class it is about")
    return replace(verdict, verdict="open", reasons=reasons)


def _lacking(report: Report, asked: Demand, proofs: Carried) -> Iterator[str]:
    """Say where a certificate does not go as far as it is asked to."""
    if proofs.unweighed:
        yield f"{proofs.unweighed} experiments carry too many outcomes to weigh them here"
    covered = report.max_size
    if asked.max_size is not None and covered is not None and covered < asked.max_size:
        yield f"it is about at most {covered} faults at once, not about {asked.max_size}"
    if asked.complete or asked.protected:
        for faults in (*report.left_out, *(frozenset({each}) for each in proofs.unspoken)):
            names = [n for fault in faults for n in (fault, fault.partition("@")[2]) if n]
            if matching(asked.protected, names) is None:
                yield f"it leaves {', '.join(sorted(faults))} out, which nobody asked for"


def _items(file: str, document: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(document, dict) and document.get("format") == EVIDENCE:
        yield from _of_evidence(document)
        return
    if isinstance(document, dict) and set(document) != {"request_class", "certificate"}:
        yield file, document
        return
    for item in document if isinstance(document, list) else [document]:
        if not isinstance(item, dict) or not isinstance(item.get("request_class"), str):
            raise UnreadableCertificate("it holds no certificates: each needs its `request_class`")
        if "certificate" not in item or len(item) != 2:
            raise UnreadableCertificate(
                "it holds no certificates: each is `request_class` and `certificate`"
            )
        yield item["request_class"], item["certificate"]


def _of_evidence(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    classes = document.get("classes")
    for each in classes if isinstance(classes, list) else ():
        if not isinstance(each, dict) or not isinstance(each.get("request_class"), str):
            raise UnreadableCertificate("it holds no certificates: each needs its `request_class`")
        yield each["request_class"], each.get("certificate")


def _read(file: Path) -> Any:
    try:
        size = file.stat().st_size
        if size > LARGEST:
            _too_large(size)
        content = file.read_text(encoding="utf-8")
        document = json.loads(content, parse_constant=_no_number, object_pairs_hook=_once)
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableCertificate(
            f"it holds no JSON that can be read: {_first(error)}"
        ) from error
    return document


def _first(error: Exception) -> str:
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:200]


def _too_large(size: int) -> NoReturn:
    raise ValueError(f"it has {size} bytes, and at most {LARGEST} are read")


def _no_number(said: str) -> NoReturn:
    raise ValueError(f"{said} is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a field that is there twice: readers differ in which one they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is there twice")
    return found


def _shortened(texts: Sequence[str], shown: int) -> list[str]:
    more = len(texts) - shown
    return [*texts[:shown], *([f"and {more} more"] if more > 0 else [])]


def _printable(text: str) -> str:
    """Spell out what would move a terminal's cursor, or could not be written at all."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
