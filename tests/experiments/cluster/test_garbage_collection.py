"""Full collections look only at what is new, and once an hour at everything."""

from __future__ import annotations

import gc
import multiprocessing
import weakref

from ldfi.experiments.cluster.garbage_collection import THOROUGH_SECONDS, short_collections


class Node:
    """Holds itself, so that only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


def survivors_are_set_aside_until_everything_is_looked_at() -> None:
    now, before = 0.0, gc.get_freeze_count()
    with short_collections(lambda: now):
        node = Node()
        dead = weakref.ref(node)
        gc.collect()
        assert gc.get_freeze_count() > before
        # When it dies, it stays for the time being
        del node
        gc.collect()
        assert dead() is not None
        # Then it goes with the next collection that looks at everything
        now += THOROUGH_SECONDS
        gc.collect()
        gc.collect()
        assert dead() is None
    assert gc.get_freeze_count() == 0


def what_dies_young_is_collected_as_ever() -> None:
    with short_collections():
        gc.collect()
        dead = weakref.ref(Node())
        gc.collect()
        assert dead() is None


def both() -> None:
    survivors_are_set_aside_until_everything_is_looked_at()
    what_dies_young_is_collected_as_ever()


def test_what_survives_is_set_aside_and_what_dies_young_is_collected() -> None:
    """In a process of its own, as a service is: in one of other tests a node lived on now and then,
    and why is not known; and what those hold takes seconds to look at."""
    spawned = multiprocessing.get_context("spawn").Process(target=both)
    spawned.start()
    spawned.join(100)
    assert spawned.exitcode == 0
