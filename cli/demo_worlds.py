"""The two demos that there are: a small shop, and with ``--full`` a streaming service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from ldfi.errors import Invalid

REPAIRED: Final = "DEMO_REPAIRED"
"""Weaknesses that the demo application is to begin without (``ldfi.demo.repairs``)."""

LARGE_ARM: Final = 0.3
"""The largest share of devices that is treated where there are few requests."""


@dataclass(frozen=True, slots=True)
class DemoWorld:
    """An application of :mod:`ldfi.demo` and how it is explored.

    ``name``: as the application's ``--world`` has it. ``kinds``: the share of requests of each
    class. ``rate``: requests a second, of ``share`` of what the machine serves at most; ``sampled``
    of them are traced. ``limit``: seconds until the demo ends with what it has found.
    ``weaknesses``: where the planted ones stand, in :mod:`ldfi.demo`.
    """

    name: str
    words: str
    devices: int
    rate: float
    kinds: Mapping[str, float]
    share: float
    sampled: float
    limit: float
    weaknesses: tuple[str, ...]
    campaign: Mapping[str, Any]

    def rates(self, in_all: float) -> str:
        """Divide requests a second among the classes, as the devices are told."""
        return ",".join(f"{kind}={in_all * part:g}" for kind, part in self.kinds.items())

    def fitted(self, share: float) -> dict[str, Any]:
        """Fit the campaign to the requests that there are. ``share``: of those that were wanted.

        Where there are fewer, more of them are treated, so that a window still decides. Simulated
        devices feel no pain.
        """
        treated = self.campaign["treatment"]
        more = max(treated, min(LARGE_ARM, treated / share)) if share > 0 else LARGE_ARM
        return {**self.campaign, "treatment": round(more, 2)}

    def planted(self, repaired: str) -> dict[tuple[str, tuple[str, ...]], str]:
        """Name the weaknesses that the demo begins with, by class and faults. ``repaired``: names
        of those that it does not have, comma-separated, as the demo application reads them. Raises
        Invalid where it has none of that name."""
        weaknesses = json.loads(files("ldfi.demo").joinpath(*self.weaknesses).read_text())
        without = set(filter(None, repaired.split(",")))
        if unknown := without - {each["name"] for each in weaknesses}:
            there = ", ".join(each["name"] for each in weaknesses)
            raise Invalid(f"{REPAIRED}: no weakness is named {', '.join(sorted(unknown))}: {there}")
        return {
            (each["class"], tuple(sorted(each["faults"]))): each["name"]
            for each in weaknesses
            if each["name"] not in without
        }


SHOP: Final = DemoWorld(
    name="shop",
    words="a shop of seven services",
    devices=300,
    rate=25.0,
    kinds={"home": 0.5, "checkout": 0.5},
    share=0.5,
    sampled=1.0,
    limit=330.0,
    weaknesses=("shop", "weaknesses.json"),
    campaign={
        "kinds": ["error"],
        "max_size": 2,
        "max_union": 3,  # so that a verdict can be read
        "treatment": 0.2,  # few beside many: a failure tells more, so fewer are hurt
        "control": 0.5,
        "concurrency": 1,  # side by side they would divide the devices, and take as long
        "window": 90.0,
        "apart": 5.0,  # a minute on live traffic
        "min_traffic": 60,
        "delta": 0.5,  # what is planted hurts every request, so a coarse look is enough
        "min_samples": 4,
        "members": 40,
        "member_budget": 100_000,
        "settle": 12.0,  # nobody waits for it where all devices report
        "follow": 0.0,
        "rechecks": 0,  # what is planted is certain; on live traffic much is tried twice
    },
)

STREAMING: Final = DemoWorld(
    name="streaming",
    words="a streaming service of sixteen services",
    devices=1200,
    rate=104.0,
    kinds={"boot": 0.5, "play": 0.25, "search": 0.25},
    share=0.75,
    sampled=0.5,
    limit=560.0,
    weaknesses=("weaknesses.json",),
    campaign={
        "max_size": 2,
        "max_union": None,  # simulated members feel no pain; on live traffic keep the cap
        "treatment": 0.1,  # of three at once the third takes from what the others leave
        "control": 0.25,
        "window": 45.0,
        "apart": 15.0,  # a minute on live traffic
        "min_traffic": 60,
        "delay": 3.0,
        "delta": 0.4,  # what is planted hurts every request, so a coarse look is enough
        "min_samples": 6,
        "members": 240,
        "member_budget": 100_000,
        "settle": 2.0,
        "follow": 0.0,
        "rechecks": 0,  # what is planted is certain; on live traffic much is tried twice
        "min_consistency": 0.0,  # a cache makes requests of the start page differ
    },
)
