"""Whether what a certificate's runs carry bears their verdicts out, without a key or a service.

It shows that the runs hold together, not that they took place: whoever writes a certificate can
write this as well. For that the records have to be in a chain that is signed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ldfi.checker.certificate_claims import unbound, unspoken
from ldfi.checker.errors import Unreadable
from ldfi.checker.outcome import AnyRecord, record_from
from ldfi.checker.verdict_check import wrong

MOST: Final = 500_000
"""Outcomes that are weighed anew: about ten seconds. A look counts for two hundred of them."""
_A_LOOK: Final = 200


@dataclass(frozen=True, slots=True)
class Carried:
    """``whole``: how many of the experiments carry what their verdicts came from, and it was
    weighed anew; ``unweighed``: how many carry it and were not, for it is too much. ``wrong``: what
    of it does not hold together. ``unspoken``: the faults that runs relied on and the certificate
    does not speak of. ``records``: what was read."""

    experiments: int
    whole: int
    wrong: tuple[str, ...]
    unweighed: int = 0
    unspoken: tuple[str, ...] = ()
    records: tuple[AnyRecord, ...] = ()


def carried(certificate: Mapping[str, Any]) -> Carried:
    """Look at the runs of a certificate that is known to be one.

    Raises Unreadable where what they carry is nothing that everybody reads alike.
    """
    try:
        return _carried(certificate)
    except (ValueError, ArithmeticError) as error:
        raise Unreadable(f"what its runs carry cannot be read: {error}") from error


def _carried(certificate: Mapping[str, Any]) -> Carried:
    runs = [run for run in certificate["evidence"] if run["origin"] == "injected"]
    read, said = [], []
    for run in runs:
        if "proof" in run:
            try:
                read.append((run, record_from({**run["proof"], "number": 1}, "its proof")))
            except (Unreadable, TypeError) as error:
                said.append(f"the proof of run {run['number']} cannot be read: {error}")
    records = [each for _, each in read]
    left = MOST
    for each in records:
        left -= _outcomes(each)
        if left >= 0:
            said += [f"{each.experiment}: {what}" for what in wrong(each)]
    if len({(each.request_class, each.version) for each in records}) > 1:
        said.append("its runs are of more than one version of a class")
    mine = {**certificate, "evidence": [run for run, _ in read]}
    said += [what for false, what in unbound(mine, records) if false]
    weighed = len(records) if left >= 0 else 0
    unweighed = len(records) - weighed
    language = certificate["axioms"]["language"]["faults"]
    beyond = frozenset[str]().union(*(unspoken(each, language) for each in records))
    return Carried(
        len(runs), weighed, tuple(said), unweighed, tuple(sorted(beyond)), tuple(records)
    )


def _outcomes(record: AnyRecord) -> int:
    looks = getattr(record, "looks", None) or ()
    return len(getattr(record, "order", None) or "") + _A_LOOK * len(looks)
