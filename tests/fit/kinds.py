"""Kinds of fault for tests: every one that can be listed, and any at all."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from ldfi.fit.protocol.kinds import GRPC_CODES, KINDS, MAX_EXCEPTION, REDIS, SQL, WORDS

LISTED: Final = (
    *(*KINDS, *WORDS),
    *(f"grpc:{code}" for code in GRPC_CODES),
    *(f"sql:{word}" for word in SQL),
    *(f"redis:{word}" for word in REDIS),
)
_MILLISECONDS = st.integers(1, 9_999_999).map(lambda ms: f"{ms / 1000:.3f}".rstrip("0").rstrip("."))
DRAWN: Final = st.one_of(
    st.lists(_MILLISECONDS | st.just("0"), min_size=2, max_size=2, unique=True).map(
        lambda pair: "delay:{}..{}".format(*sorted(pair, key=float))
    ),
    st.lists(_MILLISECONDS, min_size=2, max_size=2, unique=True).map(
        lambda pair: "delay:p50={}..p99={}".format(*sorted(pair, key=float))
    ),
)
"""Delays whose length is drawn by lot."""

ANY_KIND: Final = st.one_of(
    st.sampled_from(LISTED),
    st.integers(400, 599).map("status:{}".format),
    st.from_regex(rf"[A-Za-z_]\w{{0,{MAX_EXCEPTION - 1}}}", fullmatch=True)
    .filter(str.isascii)
    .map("exception:{}".format),
)
