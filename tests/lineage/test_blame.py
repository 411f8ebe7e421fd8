"""Blame: the chain of errors, and what brought an alternate in."""

from __future__ import annotations

from ldfi.lineage.blame import blame
from ldfi.testing.spans import span, tree


def test_the_end_of_the_chain_is_the_suspect() -> None:
    built = tree(
        span("root", kind="server", failed=True, at=(0, 100)),
        span("a", "root", at=(1, 10)),
        span("b", "root", failed=True, at=(20, 90)),
        span("c", "b", failed=True, at=(30, 80)),
        span("d", "c", at=(40, 50)),
    )
    assert blame(built, {"a", "b", "c", "d"}) == {"c"}


def test_failures_that_were_caught_are_not_to_blame() -> None:
    built = tree(
        span("root", kind="server", failed=True, at=(0, 100)),
        span("caught", "root", failed=True, at=(1, 10)),
        span("fatal", "root", failed=True, at=(20, 30)),
    )
    assert blame(built, {"caught", "fatal"}) == {"fatal"}


def test_an_alternate_is_blamed_together_with_what_brought_it_in() -> None:
    # Given a playlist whose fallback fails as well, deep inside
    built = tree(
        span("root", kind="server", failed=True, at=(0, 100)),
        span("playlist", "root", failed=True, at=(1, 40)),
        span("playlist-db", "playlist", failed=True, at=(2, 30)),
        span("fallback", "root", failed=True, at=(41, 90)),
        span("fallback-db", "fallback", failed=True, at=(42, 80)),
    )
    # Then both ends are suspects
    assert blame(built, {"playlist", "playlist-db"}) == {"playlist-db", "fallback-db"}


def test_a_fallbacks_fallback_needs_three() -> None:
    built = tree(
        span("root", kind="server", failed=True, at=(0, 100)),
        span("first", "root", failed=True, at=(1, 10)),
        span("second", "root", failed=True, at=(11, 20)),
        span("third", "root", failed=True, at=(21, 30)),
    )
    assert blame(built, {"first"}) == {"first", "second", "third"}


def test_without_a_chain_of_errors_there_is_no_suspect() -> None:
    # Given a request that answered 200 although a call failed in it
    built = tree(span("root", kind="server"), span("a", "root", failed=True))
    assert blame(built, {"a"}) == frozenset()
    # And one that failed although no call did
    built = tree(span("root", kind="server", failed=True), span("a", "root"))
    assert blame(built, {"a"}) == frozenset()
