"""The tree against the recursive definitions of RFC 9162, and proofs that prove nothing else."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.checker import merkle

SIZES = st.integers(1, 70)


def definition(leaves: list[bytes]) -> bytes:
    """The Merkle tree hash, as section 2.1.1 defines it."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = max(2**n for n in range(40) if 2**n < len(leaves))
    both = definition(leaves[:k]) + definition(leaves[k:])
    return hashlib.sha256(b"\x01" + both).digest()


def entries(size: int) -> list[bytes]:
    return [str(number).encode() for number in range(size)]


def node_of(size: int) -> merkle.Node:
    return merkle.lookup([merkle.leaf(each) for each in entries(size)])


@given(SIZES, st.data())
def test_every_root_is_that_of_the_definition(size: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, size))
    assert merkle.root(part, node_of(size)) == definition(entries(size)[:part])


def test_the_roots_of_the_test_vectors_of_certificate_transparency() -> None:
    # the inputs of the reference implementation of RFC 6962, whose tree is the same
    inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657"]
    inputs.append("606162636465666768696a6b6c6d6e6f")
    leaves = [merkle.leaf(bytes.fromhex(each)) for each in inputs]
    node = merkle.lookup(leaves)
    assert leaves[0].hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert merkle.root(8, node).hex() == (
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
    )


@given(SIZES, st.data())
def test_a_leaf_is_proved_and_no_other(size: int, data: st.DataObject) -> None:
    number, other = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
    node, leaves = node_of(size), [merkle.leaf(each) for each in entries(size)]
    head, path = merkle.root(size, node), merkle.inclusion(number, size, node)

    assert merkle.included(leaves[number], number, size, path, head)
    assert merkle.included(leaves[other], other, size, path, head) == (number == other)
    assert merkle.included(leaves[number], other, size, path, head) == (number == other)
    assert not merkle.included(leaves[number], number, size, [*path, head], head)
    assert not path or not merkle.included(leaves[number], number, size, path[:-1], head)


@given(SIZES, st.data())
def test_a_tree_is_proved_to_have_grown_and_from_no_other(size: int, data: st.DataObject) -> None:
    before = data.draw(st.integers(0, size))
    node = node_of(size)
    path = merkle.consistency(before, size, node)
    earlier, later = merkle.root(before, node), merkle.root(size, node)

    assert merkle.consistent(before, size, path, earlier, later)
    if before:
        changed = data.draw(st.integers(0, before - 1))
        forged = entries(size)
        forged[changed] = b"another"
        other = merkle.root(before, merkle.lookup([merkle.leaf(each) for each in forged]))
        assert not merkle.consistent(before, size, path, other, later)
        assert not merkle.consistent(before, size, path, earlier, other)


def test_what_is_not_there_is_not_proved() -> None:
    with pytest.raises(ValueError, match="no leaf 3"):
        merkle.inclusion(3, 3, node_of(3))
    with pytest.raises(ValueError, match="never grew"):
        merkle.consistency(4, 3, node_of(3))
    assert not merkle.included(merkle.EMPTY, 0, 0, [], merkle.EMPTY)
    assert not merkle.consistent(4, 3, [], merkle.EMPTY, merkle.EMPTY)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 999)), min_size=1, max_size=60))
def test_what_changes_above_a_leaf_is_all_that_changes(steps: list[tuple[bool, int]]) -> None:
    """Leaves are added and changed in any order: the root is that of the tree made at once."""
    leaves: list[bytes] = []
    nodes: dict[tuple[int, int], bytes] = {}
    for number, (add, drawn) in enumerate(steps):
        hashed = merkle.leaf(str(number).encode())
        place = len(leaves) if add or not leaves else drawn % len(leaves)
        leaves[place : place + 1] = [hashed]
        changed = merkle.replaced(place, len(leaves), hashed, lambda *at: nodes[at])
        nodes.update({(level, index): each for level, index, each in changed})
        assert changed[-1][2] == merkle.root(len(leaves), merkle.lookup(leaves))
        assert len(changed) == (len(leaves) - 1).bit_length() + 1
