"""``python -m ldfi.checker``: is this evidence what the service signed, and does it hold together?

Exit codes: 0 borne out, 1 false, 2 unreadable, 3 true as far as it goes, but not signed, not all of
it, or old. Needs no service, and of ldfi this room only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ldfi.checker.canonical import read
from ldfi.checker.document import EvidenceFile
from ldfi.checker.errors import Unreadable
from ldfi.checker.head import Head, PublicKey, public_keys
from ldfi.checker.verify import Against, Examined, verify

BORNE_OUT, FALSE, UNREADABLE, LACKING = 0, 1, 2, 3
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a file, and say what was found."""
    given = _parser().parse_args(arguments)
    try:
        answer = answer_of(given.file, given.key, given.head, given.max_age, given.classes)
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{error.name} is not installed: pip install 'ldfi[signing]'\n")
        return UNREADABLE
    except (Unreadable, OSError) as error:
        sys.stderr.write(f"unreadable: {printable(str(error))}\n")
        return UNREADABLE
    sys.stdout.write(json.dumps(said(answer)) + "\n" if given.json else words(answer))
    return exit_code(answer)


def answer_of(
    file: Path,
    keys: Sequence[Path],
    head: Path | None = None,
    max_age: float | None = None,
    classes: Sequence[str] = (),
) -> Examined:
    """Check a file. Raises Unreadable, or OSError."""
    document = EvidenceFile.from_json(read(_text(file)))
    known: list[PublicKey] = []
    for each in keys:
        known += public_keys(_text(each))
    earlier = None if head is None else Head.from_json(read(_text(head)), "the earlier head")
    return verify(document, Against(known, time.time(), earlier, max_age, classes))


def exit_code(answer: Examined) -> int:
    """Return how it ended, to a script."""
    return FALSE if answer.false else LACKING if answer.lacking else BORNE_OUT


def said(answer: Examined) -> dict[str, object]:
    """Say it as a document."""
    word = {BORNE_OUT: "borne out", FALSE: "false", LACKING: "lacking"}[exit_code(answer)]
    return {
        "verdict": word,
        "false": answer.false,
        "lacking": answer.lacking,
        "runs": answer.runs,
        "pruned": answer.pruned,
        "classes": answer.classes,
    }


def words(answer: Examined) -> str:
    """Say it to people."""
    head = {
        BORNE_OUT: "borne out: signed, whole, and every verdict follows from its outcomes",
        FALSE: "false",
        LACKING: "nothing is wrong, but not all of it is proved",
    }[exit_code(answer)]
    lines = [f"{head} ({answer.runs} runs, {answer.classes} classes)"]
    if answer.pruned:
        lines.append(
            f"  {answer.pruned} more runs were dropped by age: that they were there is proved, "
            "what they came to is signed and cannot be worked out any more"
        )
    lines += [f"  {each}" for each in (*answer.false, *answer.lacking)]
    return "\n".join(map(printable, lines)) + "\n"


def printable(text: str) -> str:
    """Return text with what would move a terminal's cursor, or cannot be written, spelt out."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def seconds(text: str) -> float:
    """Read ``7d``, ``12h``, ``30m`` or ``45s``. Raises ValueError."""
    if text[-1:] not in _UNITS or not text[:-1].isdecimal():
        raise ValueError(f"{text!r} is not a duration: write 7d, 12h, 30m or 45s")
    return int(text[:-1]) * _UNITS[text[-1]]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} is not text") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ldfi.checker", description=__doc__)
    parser.add_argument("file", type=Path, help="what `ldfi certificate get` wrote")
    parser.add_argument(
        "--key",
        type=Path,
        action="append",
        default=[],
        help="public keys in PEM; repeatable; without one nothing that is signed is believed",
    )
    parser.add_argument(
        "--head", type=Path, help="a head that was kept: it must have grown from it"
    )
    parser.add_argument("--max-age", type=seconds, help="of the head, as 7d: older is not enough")
    parser.add_argument(
        "--class",
        dest="classes",
        action="append",
        default=[],
        help="a class that has to be certified; repeatable; others are not looked at",
    )
    parser.add_argument("--json", action="store_true", help="say it as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
