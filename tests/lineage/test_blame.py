"""Blame: the chain of errors, what brought an alternate in, and what is beside the point."""

from __future__ import annotations

import pytest

from ldfi.lineage.blame import NOTHING_KNOWN, FailureRecord, blame
from ldfi.lineage.evidence import ends
from ldfi.lineage.span import Span
from ldfi.lineage.tree import Tree
from ldfi.testing.spans import span, tree


def failing(*calls: str) -> Tree:
    """A failed request with calls one after the other: ``name`` went well, ``name!`` failed,
    ``name!!`` by an injected fault, ``name!503`` in that way."""
    return tree(span("root", kind="server", failed=True, at=(0, 999)), *_spans(calls, "root"))


def _spans(calls: tuple[str, ...], parent: str) -> list[Span]:
    made = []
    for number, call in enumerate(calls):
        name, failed, how = call.partition("!")
        said = {"fired": "error"} if how == "!" else {"status": how} if how else {}
        at = (10 * number + 1, 10 * number + 9)
        id_ = f"{parent}/{number}"
        made.append(span(id_, parent, failed=bool(failed), at=at, point=name, **said))
    return made


def test_the_end_of_the_chain_is_the_suspect() -> None:
    built = tree(
        span("root", kind="server", failed=True, at=(0, 100)),
        span("a", "root", at=(1, 10)),
        span("b", "root", failed=True, at=(20, 90)),
        span("c", "b", failed=True, at=(30, 80)),
        span("d", "c", at=(40, 50)),
    )
    assert blame(built, {"a", "b", "c", "d"}) == ("c",)


PAY = ("cart", "pay", "ship", "mail")
USUAL = {*PAY, "ads", "log", "tax"}
MAIL = FailureRecord(survived={"status:503@mail": 5})
SEEN = FailureRecord(fatal={"pay": 9})
SHIPS = FailureRecord(always=PAY)


@pytest.mark.parametrize(
    ("calls", "record", "suspects"),
    [
        # Evidence: what good requests survived as often is no suspect while anything else failed
        (["cart", "pay!", "mail!503"], MAIL, "pay"),
        (["mail!503", "pay!"], MAIL, "pay"),
        (["cart", "mail!503"], MAIL, "mail"),
        (["pay!", "mail!500"], MAIL, "pay"),  # of another kind: then the first
        (["mail!500", "pay!"], MAIL, "mail"),
        (["pay!", "tracker!503"], FailureRecord(survived={"status:503@tracker": 6}), "pay"),
        (["mail!503", "pay!"], FailureRecord({"status:503@mail": 2}, {"mail": 3}), "mail"),
        (["mail!503", "pay!"], FailureRecord({"status:503@mail": 2}, {"mail": 2}), "pay"),
        (["ads!", "pay!"], SEEN, "pay"),
        (["pay!", "ads!"], SEEN, "pay"),
        (["ads!!", "pay!!", "mail!!"], FailureRecord({"error@mail": 5}), "pay"),
        # What did not happen any more: the last failure before the first call that is missing
        (["cart", "ads!", "pay!", "mail!"], SHIPS, "pay"),
        (["ads!", "cart!", "log", "mail!"], SHIPS, "cart"),
        (["cart", "pay", "ads!", "ship!", "log!"], SHIPS, "ship"),
        (["cart", "pay", "ship", "ads!", "mail!"], SHIPS, "ads"),  # nothing is missing
        # Time: the first that was not recovered; never the name
        (["pay!", "mail!"], NOTHING_KNOWN, "pay"),
        (["mail!", "pay!"], NOTHING_KNOWN, "mail"),
        (["ads!", "cart", "pay!"], NOTHING_KNOWN, "pay"),  # its caller went on
        (["pay!", "refund", "mail!"], NOTHING_KNOWN, "pay"),  # a compensation is not usual
        (["pay!", "pay", "mail!"], NOTHING_KNOWN, "mail"),
        (["pay!", "pay!", "pay!", "mail!"], NOTHING_KNOWN, "pay"),
        (["ads!", "ads!", "ads", "tax!", "log!"], NOTHING_KNOWN, "tax"),
        # Of injected failures none causes another, but what fails by itself beside them is fallout
        (["ads!!", "pay!!"], NOTHING_KNOWN, "pay"),
        (["ads!!", "cart", "pay!!", "ship"], NOTHING_KNOWN, "pay"),
        (["pay!!", "mail!"], NOTHING_KNOWN, "pay"),
        # Alternates, with what brought them in
        (["pay!", "standby!"], NOTHING_KNOWN, "pay standby"),
        (["pay!", "standby!", "mail!503"], MAIL, "pay standby"),
        (["pay!", "standby!"], FailureRecord({"failed@pay": 7}), "pay standby"),
        (["first!", "second!", "third!"], NOTHING_KNOWN, "first second third"),
    ],
)
def test_who_of_several_is_blamed(calls: list[str], record: FailureRecord, suspects: str) -> None:
    usual = USUAL | {"first"} if "second!" in calls else USUAL
    usual = usual | {"tracker"} if "tracker!503" in calls else usual
    assert blame(failing(*calls), usual, record) == tuple(suspects.split())


def test_of_what_nobody_has_seen_nothing_is_an_alternate() -> None:
    assert blame(failing("pay!", "mail!"), ()) == ("pay",)


def test_an_alternate_is_blamed_together_with_what_brought_it_in() -> None:
    # Given a playlist whose fallback fails as well, deep inside
    built = tree(
        span("root", kind="server", failed=True, at=(0, 100)),
        span("playlist", "root", failed=True, at=(1, 40)),
        span("playlist-db", "playlist", failed=True, at=(2, 30)),
        span("fallback", "root", failed=True, at=(41, 90)),
        span("fallback-db", "fallback", failed=True, at=(42, 80)),
    )
    # Then both ends are suspects, first the one that failed first
    assert blame(built, {"playlist", "playlist-db"}) == ("playlist-db", "fallback-db")


def test_what_was_cancelled_since_another_call_had_failed_is_not_to_blame() -> None:
    # Given three calls side by side, two of which end when the third has failed
    built = tree(
        span("root", kind="server", failed=True, at=(0, 100)),
        span("ads", "root", failed=True, at=(1, 41)),
        span("tax", "root", failed=True, at=(1, 40)),
        span("zip", "root", failed=True, at=(2, 39)),
    )
    assert blame(built, {"ads", "tax", "zip"}) == ("zip",)


def test_fallout_further_in_shares_no_blame() -> None:
    # Given that orders itself sends the mail after the payment has failed
    built = tree(
        span("root", kind="server", failed=True, at=(0, 999)),
        span("orders", "root", failed=True, at=(1, 900)),
        *_spans(("pay!", "mail!503"), "orders"),
    )
    assert blame(built, {"orders", "pay", "mail"}, MAIL) == ("pay",)
    assert ends(built) == {"failed@pay", "status:503@mail"}


def test_without_a_chain_of_errors_there_is_no_suspect() -> None:
    # Given a request that answered 200 although a call failed in it
    built = tree(span("root", kind="server"), span("a", "root", failed=True))
    assert blame(built, {"a"}) == ()
    # And one that failed although no call did
    built = tree(span("root", kind="server", failed=True), span("a", "root"))
    assert blame(built, {"a"}) == ()


CANCELLED = {
    "asyncio": {"thrown": "asyncio.exceptions.CancelledError"},
    "Java": {"error_type": "java.util.concurrent.CancellationException"},
    "fetch": {"error_type": "AbortError"},
    "gRPC": {"rpc": "grpc", "rpc_status": "1"},
    "nginx": {"status": "499"},
}
MS = 1_000_000


@pytest.mark.parametrize("said", CANCELLED.values(), ids=CANCELLED)
@pytest.mark.parametrize("ended", [89, 90, 91])
def test_who_is_given_up_when_another_fails_is_not_to_blame(
    said: dict[str, str], ended: int
) -> None:
    # Given two calls side by side, and the one that is cancelled may seem to have ended first
    built = tree(
        span("root", kind="server", failed=True, at=(0, 100 * MS)),
        span("pay", "root", failed=True, at=(1 * MS, 90 * MS), status="503"),
        span("stock", "root", failed=True, at=(2 * MS, ended * MS), **said),
    )
    assert blame(built, {"pay", "stock"}) == ("pay",)


@pytest.mark.parametrize(
    ("began", "ended"),
    [(1, 900), (700, 800), (91, 95)],
    ids=["long after", "after, by a deadline", "not beside it"],
)
def test_who_is_given_up_for_its_own_sake_is_to_blame(began: int, ended: int) -> None:
    # Given something that every good request survives, and a call that its caller was tired of
    built = tree(
        span("root", kind="server", failed=True, at=(0, 1000 * MS)),
        span("ads", "root", failed=True, at=(1 * MS, 90 * MS), status="503"),
        span("stock", "root", failed=True, at=(began * MS, ended * MS), **CANCELLED["asyncio"]),
    )
    assert blame(built, {"ads", "stock"}, FailureRecord({"status:503@ads": 9})) == ("stock",)


def test_of_calls_that_were_all_given_up_the_first_is_to_blame() -> None:
    built = tree(
        span("root", kind="server", failed=True, at=(0, 100 * MS)),
        span("pay", "root", failed=True, at=(1 * MS, 90 * MS), **CANCELLED["asyncio"]),
        span("stock", "root", failed=True, at=(2 * MS, 91 * MS), **CANCELLED["asyncio"]),
    )
    assert blame(built, {"pay", "stock"}) == ("pay",)
