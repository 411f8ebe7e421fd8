"""The hypothesis with the highest probability of being harmful over its cost.

Decreasing probability over cost finds independent culprits earliest (Blackwell). The probability of
a set is taken to be the product of its faults' likelihoods. Where the caller knows a likelihood
(how often the dependency fails by itself, retries and fallbacks seen, its record in other request
classes) it is used; else it is estimated from the evidence at hand: the share of requests that
relied on the point, and how often it failed by itself.
"""

from __future__ import annotations

from ldfi.solver.bits import members
from ldfi.solver.search import SOME, Search


class Likeliest:
    """See the module."""

    def choose(self, search: Search) -> int | None:
        """Choose the best of the open hypotheses; ties are broken at random."""
        found = search.sample(steps=SOME) or search.smallest()
        if not found:
            return None
        likelihood = _likelihoods(search)

        def worth(hypothesis: int) -> float:
            product = 1.0
            for variable in members(hypothesis):
                product *= likelihood[variable]
            return product / (search.cost(hypothesis) or 1.0)

        best = max(map(worth, found))
        return search.rng.choice([each for each in found if worth(each) >= best * (1 - 1e-9)])


def _likelihoods(search: Search) -> list[float]:
    """Estimate the likelihood of each variable; a domain is as likely as its likeliest member."""
    language = search.now.language
    requests, reached, failures = 0, [0] * len(language.names), [0] * len(language.names)
    for run in search.now.equation.good.values():
        if run.origin == "observed":
            requests += run.count
            for counts, faults in ((reached, run.support or ()), (failures, run.failed)):
                for fault in faults:
                    counts[language.index[fault]] += run.count
    single = [
        search.likelihoods.get(name, (reach + 1) / (requests + 2) * (1 + fails) / (2 + fails))
        for name, reach, fails in zip(language.names, reached, failures, strict=True)
    ]
    return [
        search.likelihoods.get(name, max(single[each] for each in members(expansion)))
        for name, expansion in zip(language.names, language.expansions, strict=True)
    ]
