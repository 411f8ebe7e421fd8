"""Whether the chain on record may be signed: nobody signs what somebody else has put there.

A head is signed anew at each end of a run and whenever somebody asks for it. Before that the head
on record has to bear a signature of one of our own keys, and the nodes on record have to make the
root that was signed. Otherwise nothing is signed, people are told, and it stays so until a backup
is restored, or whoever has the key vouches for what is there (:func:`chain.adopt`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from ldfi.checker import merkle
from ldfi.checker.canonical import read
from ldfi.checker.errors import Unreadable
from ldfi.checker.head import Head, PublicKey, SigningKey, public_keys
from ldfi.errors import Conflict
from ldfi.experiments.store import notifications
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import FlagRow, HeadRow, RunRow

HEAD = 1
"""The only row of the table of heads."""
NONE = Head(0, merkle.EMPTY, 0.0, {}, counts=merkle.EMPTY)
_FLAG = "unsigned"
AT_ONCE = 10_000
"""Nodes that are asked for in one question: no database takes more than some 30,000 names."""
_log = logging.getLogger("ldfi")


@dataclass(frozen=True, slots=True)
class ChainCheck:
    """``head``: the one on record, without the runs that it counts. ``unsound``: why nothing can be
    built on what is on record; ``unsigned``: why it is not ours to sign. Both empty where it is."""

    head: Head
    unsound: str = ""
    unsigned: str = ""

    @property
    def wrong(self) -> str:
        """Why nothing is signed; empty where it may be."""
        return self.unsound or self.unsigned


def check(session: Session, keys: Sequence[SigningKey], *, lock: bool = False) -> ChainCheck:
    """Look at the head on record. Without keys of our own nobody looks any further."""
    row = session.get(HeadRow, HEAD, with_for_update=lock)
    try:
        head = NONE if row is None else Head.from_json(read(row.document))
        if not keys:
            return ChainCheck(head)
        return ChainCheck(head, _unsound(session, head), _unsigned(head, ours(keys)))
    except (Unreadable, NoResultFound, ValueError) as error:
        if not keys:
            raise
        return ChainCheck(NONE, f"the chain on record cannot be read: {error}")


def ours(keys: Sequence[SigningKey]) -> list[PublicKey]:
    """Return the public parts of our keys."""
    return [public for each in keys for public in public_keys(each.public_pem())]


def tell(change: Change, why: str, head: Head) -> None:
    """Say that nothing is signed, and why: to the log and the audit, and to people once."""
    _log.error("the chain of runs is not signed: %s", why)
    change.audit("not signed", "chain of runs", f"{why}; on record: {head.to_json()}"[:2_000])
    flag = change.session.get(FlagRow, _FLAG)
    if flag is None or flag.value.get("reason") != why:
        change.session.merge(FlagRow(name=_FLAG, value={"reason": why}))
        title = "Certificates are not signed any more"
        notifications.put(change, "not-signed", title, why)


def settle(change: Change) -> None:
    """Forget what people were told: it is signed again."""
    flag = change.session.get(FlagRow, _FLAG)
    if flag is not None:
        change.session.delete(flag)


def _unsound(session: Session, head: Head) -> str:
    last = session.scalar(select(func.max(RunRow.leaf)))
    there = 0 if last is None else last + 1
    if there != head.size:
        return f"{there} runs are on record, and the head counts {head.size}"
    if merkle.root(head.size, node_of(session)) != head.root:
        return "the runs on record are not those of the head"
    return ""


def _unsigned(head: Head, known: Sequence[PublicKey]) -> str:
    if not head.size and head.certificates is None:
        return ""
    if not head.signatures:
        return f"nobody has signed the {head.size} runs on record; see `ldfi certificate adopt`"
    mine = [key for key in known if key.id in head.signatures]
    if not mine:
        names = ", ".join(sorted(head.signatures))
        return f"it was signed by {names}, which is no key of ours; see `ldfi certificate adopt`"
    return "; ".join(_changed(head, mine))


def _changed(head: Head, mine: Sequence[PublicKey]) -> Iterator[str]:
    body = head.body()
    for key in mine:
        if not key.signed(body, head.signatures[key.id]):
            yield f"the head on record is not what key {key.id} signed; restore a backup"


def node_of(session: Session) -> merkle.Node:
    """Look nodes up in the database, each once."""
    known: dict[int, str] = {}

    def node(level: int, index: int) -> bytes:
        last = ((index + 1) << level) - 1
        if last not in known:
            known[last] = session.scalars(select(RunRow.nodes).where(RunRow.leaf == last)).one()
        return bytes.fromhex(known[last][64 * level : 64 * (level + 1)])

    return node


def looked_up(session: Session, proofs: Callable[[merkle.Node], object]) -> merkle.Node:
    """Look up all at once, a few thousand to a question, the nodes that these proofs are made of.
    Which these are does not go by what they say."""
    last = set[int]()

    def note(level: int, index: int) -> bytes:
        last.add(((index + 1) << level) - 1)
        return b""

    proofs(note)
    wanted, known = sorted(last), dict[int, str]()
    for start in range(0, len(wanted), AT_ONCE):
        some = RunRow.leaf.in_(wanted[start : start + AT_ONCE])
        known |= dict(session.execute(select(RunRow.leaf, RunRow.nodes).where(some)).tuples().all())

    def node(level: int, index: int) -> bytes:
        nodes = known.get(((index + 1) << level) - 1, "")
        if len(nodes) < 64 * (level + 1):
            raise Conflict(f"the node {level}, {index} of the chain is gone; restore a backup")
        return bytes.fromhex(nodes[64 * level : 64 * (level + 1)])

    return node
