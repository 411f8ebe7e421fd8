from __future__ import annotations

from pathlib import Path

from experiments.domain.campaign import Campaign
from experiments.domain.experiment import Experiment
from experiments.domain.request_class import class_of
from experiments.domain.settings import Settings
from experiments.store import Store
from experiments.store.store import finding_id
from fit.faults import Fault

FAULTS = frozenset({"error@api>http:GET:ratings/x"})


def a_store(folder: Path) -> Store:
    return Store(f"sqlite:///{folder / 'x.sqlite3'}")


def an_experiment() -> Experiment:
    boot = class_of({"method": "GET", "path": "/boot"})
    faults = tuple(map(Fault.parse, FAULTS))
    experiment = Experiment("e1", boot, FAULTS, faults, Settings())
    experiment.arm(1.0)
    return experiment


def test_after_a_crash_nothing_is_armed_and_no_finding_is_lost(tmp_path: Path) -> None:
    # Given a service that dies with an experiment armed, after one that found something
    store, campaign = a_store(tmp_path), Campaign("c1", Settings())
    store.campaign_started(campaign, "operator", 0.0)
    done = an_experiment()
    store.experiment_armed(campaign, done, 1.0)
    done.state, done.verdict = "decided", "harmful"
    store.experiment_ended(campaign, done, [(FAULTS, ("t1",))], 2.0)
    running = an_experiment()
    running.id = "e2"
    store.experiment_armed(campaign, running, 3.0)
    store.close()
    # When it starts again
    store = a_store(tmp_path)
    closed = store.close_leftovers(9.0)
    # Then what was armed is over, and what was found is still there
    assert closed == 1
    states = {row["id"]: row["state"] for row in store.experiments("c1")}
    assert states == {"e1": "decided", "e2": "aborted"}
    (finding,) = store.findings()
    assert finding["faults"] == sorted(FAULTS)
    assert finding["traces"] == ["t1"]
    assert "the service was restarted" in {row["why"] for row in store.audit()}
    store.close()


def test_the_same_finding_is_kept_once(tmp_path: Path) -> None:
    store, campaign = a_store(tmp_path), Campaign("c1", Settings())
    store.campaign_started(campaign, "operator", 0.0)
    for name in ("e1", "e2"):
        experiment = an_experiment()
        experiment.id = name
        store.experiment_armed(campaign, experiment, 1.0)
        store.experiment_ended(campaign, experiment, [(FAULTS, ())], 2.0)

    assert [row["id"] for row in store.findings()] == [finding_id("GET /boot", FAULTS)]
    store.close()


def test_a_halt_survives_a_restart(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    assert store.halted() is None
    store.set_halted("release", "operator", 1.0)
    store.close()

    store = a_store(tmp_path)
    assert store.halted() == "release"
    store.set_halted(None, "operator", 2.0)
    assert store.halted() is None
    store.close()
