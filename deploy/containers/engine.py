"""Podman with a store of its own: its images carry other people's names, and are to be seen nowhere
else. Kept between runs in the user's cache; networks and containers are there as well."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.stack.missing import Missing

PACKAGES: Final = "podman runc netavark aardvark-dns iptables debootstrap"
_PROGRAMS: Final = ("podman", "runc", "iptables", "debootstrap")
_LIBRARIES: Final = (Path("/usr/lib/podman/netavark"), Path("/usr/lib/podman/aardvark-dns"))

# Where systemd does not rule, cgroups are made without it. Processes may not have more limits than
# we have ourselves, which is why they are given here.
_ENGINE: Final = """[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
_STORAGE: Final = """[storage]
driver = "overlay"
graphroot = "{folder}/store"
runroot = "{run}"
"""


@dataclass(frozen=True, slots=True)
class Engine:
    """``environment``: what programs need that are to use this store."""

    environment: Mapping[str, str]

    def do(self, *words: str | Path, seconds: float = 900.0) -> str:
        """Run podman, and return what it prints. Raises Missing with what it says."""
        done = subprocess.run(
            ["podman", *words],
            env=dict(self.environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        if done.returncode:
            said = (done.stderr or done.stdout)[-3000:]
            raise Missing(f"podman {' '.join(map(str, words[:3]))} failed: {said}")
        return done.stdout.strip()

    def has(self, image: str) -> bool:
        """Return whether there is such an image."""
        found = subprocess.run(
            ["podman", "image", "exists", image], env=dict(self.environment), check=False
        )
        return found.returncode == 0


def cache() -> Path:
    """Find the folder in which things are kept that take long to make."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ldfi"


def engine() -> Engine:
    """Make podman ready. Raises Missing where it cannot work, with the reason."""
    absent = [each for each in _PROGRAMS if shutil.which(each) is None]
    absent += [each.name for each in _LIBRARIES if not each.exists()]
    if absent:
        raise Missing(f"no {', '.join(absent)}: apt-get install {PACKAGES}")
    if os.geteuid() != 0:
        raise Missing(
            "only root can bring the containers up: their networks and debootstrap need it"
        )
    folder, run = cache() / "containers", Path("/run/ldfi-containers")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("containers.conf", _ENGINE), ("storage.conf", _STORAGE)):
        (folder / name).write_text(text.format(folder=folder, run=run))
    made = Engine(
        {
            **os.environ,
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "BUILDAH_FORMAT": "docker",  # the other format has no health checks
        }
    )
    made.do("info")
    return made
