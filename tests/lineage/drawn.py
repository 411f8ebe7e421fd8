"""Random programs and sets, as hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from ldfi.testing.programs import ANSWERED, GAVE_UP, REFUSED, Call, Step

ALL = (REFUSED, ANSWERED, GAVE_UP)


@st.composite
def programs(draw: st.DrawFn, points: int, *, picky: bool = False, named: str = "p{}") -> Call:
    """A program of at most ``points`` points, each called from one place.

    ``picky``: a step may handle a refused call and no answer that is an error, or the reverse.
    ``named``: what its points are called.
    """
    names = [named.format(i) for i in range(points)]
    return Call("root", draw(_steps(names, 3, picky)), draw(st.booleans()))


@st.composite
def _steps(draw: st.DrawFn, names: list[str], depth: int, picky: bool) -> tuple[Step, ...]:
    steps = []
    while names and depth and (draw(st.booleans()) or depth == 3):
        mode = draw(st.sampled_from(["critical", "optional", "fallback", "retry"]))
        many = 2 if mode == "fallback" and len(names) > 1 else 1
        calls: list[Call] = []
        while names and len(calls) < many:
            point = names.pop(0)
            inner = draw(_steps(names, depth - 1, picky))
            calls.append(Call(point, inner, draw(st.booleans()), draw(st.booleans())))
        kinds = [ALL, (REFUSED,), (ANSWERED,)] if picky else [ALL]
        steps.append(Step(mode, tuple(calls), draw(st.sampled_from(kinds))))
    return tuple(steps)


def sets_of(items: list[str]) -> st.SearchStrategy[frozenset[str]]:
    """Any set of some items."""
    return st.frozensets(st.sampled_from(items)) if items else st.just(frozenset())
