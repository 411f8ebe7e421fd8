"""Few of many discoveries may be false: e-LOND over a stream of experiments without end.

A service that runs 500 experiments a day at a fixed α finds harm where there is none every day.
e-LOND (Xu and Ramdas, "Online multiple testing with e-values", arXiv 2311.06412) gives the t-th
experiment the level

    α_t = α · γ_t · (R + 1)

where R is the number of discoveries so far and the γ_t are fixed beforehand and sum to at most one.
Call the t-th hypothesis a discovery when its evidence, an e-value E_t, reaches 1/α_t. Then the
expected share of false ones among the discoveries is at most α, however the experiments depend on
each other: a false discovery adds 1{E_t ≥ 1/α_t} / R_end ≤ α_t E_t / (R + 1) = α γ_t E_t to that
share, since it is itself one more than the R before it, and E_t is at most one on average.

**One stream for the service's life.** Every experiment that gets a level takes the next one,
whatever campaign or run it belongs to, also after a restart: a stream that began anew with each run
would promise α for each run, and people read all findings together. Campaigns may ask for different
α; the promise is then the largest of them.

The level is fixed when an experiment starts. Experiments that run side by side know of fewer
discoveries than they would one after another, which only lowers their levels: the argument needs R
to be a count of other discoveries, not of all that came before.

Call :meth:`OnlineFdr.discovered` for that which the rate is to be held for. If only *confirmed*
findings are counted, then the rate holds for the confirmed findings and for the ``harmful``
verdicts of first runs alike (R is then no larger than the count of either), and the confirming run
needs no level of its own: it can only take discoveries away. If every ``harmful`` verdict is
counted, the rate holds for the verdicts, and no longer by proof for those of them that are
confirmed.
"""

from __future__ import annotations

from dataclasses import dataclass

EXPONENT = 1.1
ZETA = 10.5845
"""Sum of t^-1.1 over all t, rounded up: ζ(1.1) = 10.58444…"""


def gamma(t: int) -> float:
    """Return the share of α of the t-th experiment, t = 1, 2, …; all together at most one.

    t^-1.1 / ζ(1.1). With a steady share of discoveries the level goes as t·γ_t, so γ shall fall as
    slowly as a finite sum allows. Of all t^-s this one has the largest γ after e^10 = 22,026
    experiments, six weeks at 500 a day, and loses little for years: t·γ_t is 0.051 after one day,
    0.035 after six weeks, 0.024 after a million. 1/(t log²(t+1)) has more for the first five
    experiments, and a tenth of it after ten days.
    """
    return float(t**-EXPONENT) / ZETA


@dataclass(slots=True)
class OnlineFdr:
    """Levels for experiment after experiment. ``tested`` and ``discoveries`` are all of its state:
    give them back after a restart. Raises ValueError for counts that cannot be."""

    tested: int = 0
    discoveries: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.discoveries <= self.tested:
            raise ValueError(f"{self.discoveries} discoveries in {self.tested} experiments")

    def next_level(self, alpha: float = 0.05) -> float:
        """Return the level of the experiment that starts now. Each call uses one up, for good.

        Raises ValueError for an α that is no share.
        """
        if not 0 < alpha < 1:
            raise ValueError(f"alpha is {alpha}; it must be between 0 and 1")
        self.tested += 1
        return alpha * gamma(self.tested) * (self.discoveries + 1)

    def discovered(self) -> None:
        """Count a discovery among the experiments that got a level. Never taken back.

        What was suspected by an experiment that is not in the stream (its record is gone) adds
        nothing once all that are in it are discoveries: later levels are lower than they might be.
        """
        self.discoveries = min(self.discoveries + 1, self.tested)
