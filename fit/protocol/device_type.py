"""The kind of device a request comes from, by its ``User-Agent``: a short table and no more.

Seven answers: ``tv``, ``console``, ``tablet``, ``phone``, ``desktop``, ``bot`` and ``other``. A
browser says what it likes: an iPad that asks for desktop pages calls itself a Mac and is taken for
one. An application of your own whose name tells nothing is ``other``; let it send a header, and
choose that (:mod:`ldfi.fit.protocol.chosen_features`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LONGEST = 512
"""Characters that are looked at; whatever follows is a stranger's text."""

_TABLE: Final = tuple(
    (device, re.compile(pattern, re.IGNORECASE))
    for device, pattern in (
        ("bot", r"bot\b|bot/|crawl|spider|slurp|headless|lighthouse|monitor|^curl/|^wget/"),
        ("console", r"playstation|xbox|nintendo"),
        (
            "tv",
            r"smart-?tv|smarttv|\btv\b|googletv|apple ?tv|appletv|android tv|hbbtv|netcast"
            r"|web0s|webos|tizen|bravia|roku|\baft[a-z]|crkey|chromecast|viera|aquos",
        ),
        ("tablet", r"ipad|tablet|kindle|silk/|playbook|android(?!.*\bmobile\b)"),
        (
            "phone",
            r"iphone|ipod|\bmobile\b|mobile/|windows phone|opera mini|cfnetwork|okhttp|dalvik",
        ),
        ("desktop", r"windows nt|macintosh|x11|cros |linux x86_64|electron"),
    )
)


@lru_cache(maxsize=1024)
def device_type(agent: str) -> str:
    """Name the kind of device; the first row of the table that fits."""
    text = agent[:_LONGEST]
    if re.search(r"tizen|samsung", text, re.IGNORECASE) and "Mobile" in text:
        return "phone"  # phones and watches run Tizen, too
    return next((device for device, pattern in _TABLE if pattern.search(text)), "other")
