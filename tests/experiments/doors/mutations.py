"""What is right, made wrong: bytes that are changed, cut, doubled, and put into each other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

TOKENS: Final = (
    *(b"\0", b"\xff", b"\xff" * 9, b"\x80" * 10 + b"\1", b"[" * 2_000, b'{"a":' * 2_000, b"\r\n"),
    *(b"null", b"1e999", b"9" * 5_000, b"-1", b'"\\ud800"', b"\xed\xa0\x80", b"\\u0000", b"NaN"),
    *(b"%66it=", b"fit=", b",", b";", b"~", b".", b"*x: &x [*x]", b"? !!python/object:os.system"),
)
MOST: Final = 300_000
"""Bytes that a body grows to."""


def mutated(chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Take one of the seeds, and change it up to six times."""
    body = bytearray(chance.choice(seeds))
    for _ in range(chance.randrange(7)):
        at, other = chance.randrange(len(body) + 1), chance.choice(seeds)
        match chance.randrange(7):
            case 0 if body:
                body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
            case 1:
                body[at:at] = chance.choice(TOKENS)
            case 2:
                del body[at : at + chance.randrange(1, 40)]
            case 3:
                del body[at:]
            case 4:
                body[at:at] = body[at : at + chance.randrange(1, 400)] * chance.randrange(1, 30)
            case 5:
                start = chance.randrange(len(other) + 1)
                body[at:] = other[start:]
            case _:
                body[at : at + 4] = chance.randbytes(4)
    return bytes(body[:MOST])
