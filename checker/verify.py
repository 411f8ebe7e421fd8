"""The check: whether a document is what a service signed, all of it, and follows from itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ldfi.checker import merkle
from ldfi.checker.certificate_claims import unbound
from ldfi.checker.document import ClassEvidence, EvidenceFile
from ldfi.checker.errors import Unreadable
from ldfi.checker.head import Head, PublicKey
from ldfi.checker.outcome import OutcomeRecord
from ldfi.checker.record import RunRecord
from ldfi.checker.verdict_check import wrong

AHEAD = 300.0
"""Seconds by which the clock of the service may be ahead of ours."""
LATE = 3_600.0
"""Seconds after its end within which a run is in the tree, also when the database was away."""


@dataclass(frozen=True, slots=True)
class Against:
    """What it is held against. ``earlier``: a head that was kept; ``max_age``: seconds; ``now``:
    Unix seconds; ``classes``: those that have to be there, and no others are looked at; empty: all
    that are; ``weigh``: whether verdicts are worked out anew."""

    keys: Sequence[PublicKey]
    now: float
    earlier: Head | None = None
    max_age: float | None = None
    classes: Sequence[str] = ()
    weigh: bool = True


@dataclass(slots=True)
class Examined:
    """``false``: what is not so. ``lacking``: what may be so, and nothing here proves. ``runs``:
    how many were proved, of how many class versions. ``pruned``: how many were dropped by age: that
    they were there is proved, what they came to is only signed."""

    false: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    runs: int = 0
    classes: int = 0
    pruned: int = 0


def verify(document: EvidenceFile, asked: Against) -> Examined:
    """Check a document. Raises Unreadable for a certificate that is none."""
    there = {each.request_class for each in document.classes}
    if asked.classes:
        mine = tuple(each for each in document.classes if each.request_class in asked.classes)
        document = replace(document, classes=mine)
    answer = Examined(classes=len(document.classes))
    missing = [name for name in dict.fromkeys(asked.classes) if name not in there]
    answer.lacking += (f"{name}: there is no certificate of it" for name in missing)
    if missing and not document.classes:
        return answer
    answer.false += _twice(document)
    for each in document.classes:
        for leaf in each.runs:
            answer.runs += 1
            said_wrong = wrong(leaf.record) if asked.weigh else ()
            answer.false += (f"{_run(each, leaf.index)}: {said}" for said in said_wrong)
        _listed(each, answer)
        _bound(each, answer)
        signed_whole(each, document.head, answer)
        _checkpointed(each, document.head, asked.keys, answer)
    head = document.head
    if head is None or not head.signatures:
        answer.lacking.append("nobody has signed it")
    if head is None:
        if asked.earlier is not None:
            answer.false.append("there was a head before, and here is none")
        return answer
    if head.signatures:
        answer.false += (f"the head: {said}" for said in head.wrong(asked.keys))
    answer.false += _in_tree(document, head)
    if head.time > asked.now + AHEAD:
        answer.false.append("the head is signed with a time that has not come")
    if asked.max_age is not None and head.time < asked.now - asked.max_age:
        old = f"{(asked.now - head.time) / 86_400:.1f} days old"
        answer.lacking.append(f"the head is {old}: what came since is not in it")
    if asked.earlier is not None:
        answer.false += _grown(document, head, asked.earlier, asked.keys)
    return answer


def _run(each: ClassEvidence, index: int) -> str:
    return f"{each.name}, run {index}"


def _twice(document: EvidenceFile) -> Iterator[str]:
    """Report runs that are listed twice, or are missing."""
    if not document.classes:
        yield "there is no class in it"
    names = [(each.request_class, each.version) for each in document.classes]
    if len({*names}) < len(names):
        yield "a class version is in it twice"
    ids = [leaf.record.experiment for leaf in document.leaves()]
    ids += [each for one in document.classes for each in one.unsigned]
    if len({*ids}) < len(ids):
        yield "a run is in it twice"


def _listed(each: ClassEvidence, answer: Examined) -> None:
    """Look whether the runs are those of the class version, in their order."""
    listed = [(leaf.record.number, leaf.index) for leaf in each.runs]
    if listed != sorted(listed):
        answer.false.append(f"{each.name}: its runs are not in their order")
    listed = sorted([*listed, *((left.number, left.index) for left in each.pruned)])
    numbers, places = [number for number, _ in listed], [place for _, place in listed]
    if numbers != list(range(1, len(numbers) + 1)):
        answer.false.append(f"{each.name}: its runs are not 1 to {len(numbers)}, in their order")
    if places != sorted(places):
        answer.false.append(f"{each.name}: its runs are not in the order of the tree")
    for leaf in each.runs:
        if (leaf.record.request_class, leaf.record.version) != (each.request_class, each.version):
            answer.false.append(f"{_run(each, leaf.index)} is one of another class version")
    if each.unsigned:
        answer.lacking.append(f"{each.name}: {len(each.unsigned)} runs are not signed")
    tests = sum(isinstance(leaf.record, OutcomeRecord) for leaf in each.runs)
    if tests:
        answer.lacking.append(f"{each.name}: {tests} runs are of a test, and nobody signs those")
    kept = sum(isinstance(r := leaf.record, OutcomeRecord) and r.kept for leaf in each.runs)
    if kept:
        answer.lacking.append(f"{each.name}: {kept} runs are kept from an earlier exploration")
    answer.lacking += _unopened(each)


def _checkpointed(
    each: ClassEvidence, head: Head | None, keys: Sequence[PublicKey], answer: Examined
) -> None:
    """Check that what is left of pruned runs is what was signed."""
    answer.pruned += len(each.pruned)
    if each.checkpoint is None:
        if each.pruned:
            answer.false.append(
                f"{each.name}: {len(each.pruned)} runs are said to be pruned, by nobody"
            )
        return
    said = each.checkpoint.wrong(each.class_version, each.pruned, keys)
    answer.false += (f"{each.name}, the checkpoint of its pruned runs: {one}" for one in said)
    if not each.checkpoint.signatures:
        signing = head is not None and head.signatures
        said_so = f"{each.name}: nobody has signed that {len(each.pruned)} runs were pruned"
        (answer.false if signing else answer.lacking).append(said_so)


def _unopened(each: ClassEvidence) -> Iterator[str]:
    """Report second slots whose first slot is missing."""
    judged = [(leaf.index, r) for leaf in each.runs if isinstance(r := leaf.record, RunRecord)]
    left = {
        (frozenset(record.hypothesis), round(record.worse, 9))
        for _, record in judged
        if record.verdict == "harmful"
    }
    for index, record in judged:
        opening = record.opening
        if opening and (frozenset(record.hypothesis), round(opening[0], 9)) not in left:
            yield f"{_run(each, index)}: the first slot of its proof is not here"


def _bound(each: ClassEvidence, answer: Examined) -> None:
    """Check that the certificate claims what was recorded."""
    if each.certificate is None:
        answer.lacking.append(f"{each.name}: there is no certificate")
        return
    try:
        records = [leaf.record for leaf in each.runs]
        found = list(unbound(each.certificate, records, each.pruned))
    except (TypeError, LookupError, AttributeError, ValueError, ArithmeticError) as error:
        raise Unreadable(f"{each.name}: its certificate is none: {error!r}") from error
    for false, said in found:
        (answer.false if false else answer.lacking).append(f"{each.name}: {said}")


def signed_whole(each: ClassEvidence, head: Head | None, answer: Examined) -> None:
    """Look whether the certificate is the one that was signed, if the head was."""
    if each.certificate is None or head is None:
        return
    mine, tree = each.certified, head.certificates
    if mine is None or tree is None:
        answer.lacking.append(f"{each.name}: its certificate is not signed, only its runs are")
        return
    try:
        leaf = mine.leaf(each.class_version, each.certificate)
    except ValueError as error:
        raise Unreadable(f"{each.name}: its certificate is none: {error}") from error
    if not merkle.included(leaf, mine.place, tree.count, mine.path, tree.root):
        answer.false.append(f"{each.name}: its certificate is not the one that was signed")
    if mine.time > head.time:
        answer.false.append(f"{each.name}: its certificate was written after the head was signed")


def _in_tree(document: EvidenceFile, head: Head) -> Iterator[str]:
    """Report runs that are not in the tree, and runs of the tree that are left out."""
    for each in document.classes:
        there, here = head.runs.get(each.class_version, 0), len(each.runs) + len(each.pruned)
        if here != there:
            yield f"{each.name}: {here} runs of {there} are here"
        for left in each.pruned:
            if not merkle.included(left.hashed, left.index, head.size, left.path, head.root):
                yield f"{_run(each, left.index)}, which was pruned, is not in the tree"
        for leaf in each.runs:
            hashed = leaf.record.leaf
            if not merkle.included(hashed, leaf.index, head.size, leaf.path, head.root):
                yield f"{_run(each, leaf.index)} is not what is in the tree"
            if leaf.record.ended > head.time:
                yield f"{_run(each, leaf.index)} ended after the head was signed"


def _grown(
    document: EvidenceFile, head: Head, earlier: Head, keys: Sequence[PublicKey]
) -> Iterator[str]:
    """Report a tree that has not grown from the one whose head was kept."""
    yield from (f"the earlier head: {said}" for said in earlier.wrong(keys))
    if head.size < earlier.size:
        yield f"the tree was cut back: {head.size} runs, there were {earlier.size}"
        return
    if head.time < earlier.time:
        yield "the head is signed with a time before that of the earlier one"
    fewer = [
        name
        for (name, version), many in earlier.runs.items()
        if head.runs.get((name, version), 0) < many
    ]
    if fewer:
        yield f"there are fewer runs of {fewer[0]} than there were"
    path = document.grown.get(earlier.size, ())
    if not merkle.consistent(earlier.size, head.size, path, earlier.root, head.root):
        yield (
            f"nothing here proves that the tree grew from the {earlier.size} runs of the earlier "
            "head; get it again with --since"
        )
    for leaf in document.leaves():
        if leaf.index < earlier.size and leaf.record.ended > earlier.time:
            yield f"run {leaf.index} ended after the earlier head was signed, which has it"
        if leaf.index >= earlier.size and leaf.record.ended < earlier.time - LATE:
            yield f"run {leaf.index} ended long before the earlier head, which lacks it"
