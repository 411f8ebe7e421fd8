"""What good runs leave unproved, told bit by bit, is what it would be, asked for all at once."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.unproven_points import Unproven, token
from ldfi.experiments.domain.traffic.topology import Topology

POINTS = tuple("abc")
Faults = frozenset[str]

points = st.frozensets(st.sampled_from(POINTS), max_size=2)
faults = st.frozensets(
    st.builds(
        "{}@{}".format,
        st.sampled_from(["error", "delay", "refused", "timeout", "status:500"]),
        st.sampled_from(POINTS),
    ),
    max_size=3,
)
survivals = st.frozensets(st.sampled_from(["refused@a", "delay@b", "timeout@c"]))
runs = st.tuples(survivals, points, faults)
moved = st.tuples(st.sampled_from(POINTS), points)
domains = st.dictionaries(st.sampled_from(["db", "cache"]), faults.filter(bool), max_size=2)

# What fewer failures let be called is known already, and is news of those that survived more.
LATE = frozenset({"delay@b"}), frozenset[str](), frozenset[str]()
KNOWN = frozenset({"refused@a"}), frozenset("c"), frozenset[str]()
FEWER = frozenset[str](), frozenset("c"), frozenset[str]()


def behind(topology: Topology, these: set[str]) -> set[str]:
    return {p for p, paths in topology.paths.items() if all(path & these for path in paths)}


def left_unproved(
    groups: dict[Faults, list[tuple[Faults, Faults]]],
    survived: Faults,
    topology: Topology,
    given_up: Faults,
    domains: dict[str, Faults],
) -> set[str]:
    """By the words of the module, one after the other."""
    called = {p for points, _ in groups[survived] for p in points}
    ended = {tuple(f.split("@")) for _, faults in groups[survived] for f in faults}
    fewer = {p for less in groups if less < survived for points, _ in groups[less] for p in points}
    late = {p for p in given_up if f"delay@{p}" in survived}
    late |= {p for p in POINTS if f"timeout@{p}" in survived}
    refused = {p for kind, p in ended if kind in {"refused", "error"}}
    answered = {p for kind, p in ended if kind == "status:500"}
    known = {p for each in groups.values() for points, _ in each for p in points}
    silent = behind(topology, refused) - refused - behind(topology, answered)
    return (
        {f"delay@{p}" for p in fewer - called - behind(topology, late)}
        | {f"error@{p}" for p in silent & known}
        | {token(name) for name, errors in domains.items() if not errors <= survived}
    ) - survived


@settings(max_examples=200)  # each is cheap, and what goes wrong takes several steps in one order
@given(st.lists(runs | runs | moved | st.none(), min_size=4, max_size=15), domains, points)
@example([LATE, KNOWN, None, FEWER], {}, frozenset())
def test_told_bit_by_bit_is_told_at_once(
    steps: list[tuple[Faults, Faults, Faults] | tuple[str, Faults] | None],
    domains: dict[str, Faults],
    given_up: Faults,
) -> None:
    topology = Topology()
    unproven = Unproven(domains, topology, given_up)
    groups: defaultdict[Faults, list[tuple[Faults, Faults]]] = defaultdict(list)
    told: defaultdict[Faults, set[str]] = defaultdict(set)
    due: defaultdict[Faults, set[str]] = defaultdict(set)
    for step in [*steps, None]:
        if step is None:
            for survived, news in unproven.news():
                assert news, "no news is not told"
                assert not news & told[survived], "nothing is told twice"
                told[survived] |= news
            for survived in list(groups):
                due[survived] |= left_unproved(groups, survived, topology, given_up, domains)
            assert {k: v for k, v in told.items() if v} == {k: v for k, v in due.items() if v}
        elif len(step) == 2:
            topology.paths[step[0]].add(step[1])
            topology.changes += 1
        else:
            survived, called, ended = step
            unproven.add(survived, called, ended)
            groups[survived].append((called, ended))
