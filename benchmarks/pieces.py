"""Pieces of a benchmark, carried out by as many processes as there are processors.

Every piece has seeds of its own, so the figures do not depend on how many processes there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def carried_out(
    carry_out: Callable[[Piece], Result], pieces: Sequence[Piece], saying: str = "simulating"
) -> Iterator[Result]:
    """Carry the pieces out; the results come in the order of the pieces, a bar tells how far it is.

    ``carry_out`` is a function of a module, for it is told to the processes by its name.
    """
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = pool.map(carry_out, pieces)
        yield from track(results, saying, len(pieces), console=Console(stderr=True), transient=True)
