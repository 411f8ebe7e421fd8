"""Pieces of a benchmark, carried out by as many processes as there are processors.

Every piece has seeds of its own, so the figures do not depend on how many processes there are, nor
on whether all of it was done in one go: what was interrupted goes on where it was.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def carried_out(
    carry_out: Callable[[Piece], Result],
    pieces: Sequence[Piece],
    saying: str = "simulating",
    kept: Path | None = None,
) -> Iterator[Result]:
    """Carry the pieces out; the results come in the order of the pieces, a bar tells how far it is.

    ``carry_out`` is a function of a module, for it is told to the processes by its name. ``kept``:
    a folder of our own in which what is done stays, whatever the order it was done in. It says
    nothing of the code that did it: a folder is for one version of it.
    """
    files = [_file(kept, piece) for piece in pieces]
    there = [file is not None and file.exists() for file in files]
    left = [at for at, already in enumerate(there) if not already]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        each = partial(_carried_out, carry_out)
        results = pool.map(each, [pieces[at] for at in left], [files[at] for at in left])
        bar = track(results, saying, len(left), console=Console(stderr=True), transient=True)
        done = iter(bar)
        for file, already in zip(files, there, strict=True):
            if file and already:
                yield pickle.loads(file.read_bytes())  # noqa: S301 - ours
            else:
                yield next(done)


def _carried_out(carry_out: Callable[[Piece], Result], piece: Piece, file: Path | None) -> Result:
    result = carry_out(piece)
    if file:
        _write(file, result)
    return result


def _file(kept: Path | None, piece: object) -> Path | None:
    return kept / hashlib.sha256(repr(piece).encode()).hexdigest() if kept else None


def _write(file: Path, result: object) -> None:
    """Write whole files only: whoever is interrupted leaves none that is cut off."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_bytes(pickle.dumps(result))
    beside.replace(file)
