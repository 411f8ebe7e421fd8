"""The demo runner: every service, then the devices, until told to stop.

Prints one JSON line when all is ready: ``{"gateway": URL, "services": {...}, "pids": [...]}``.
Stops on SIGTERM, SIGINT, when its standard input (if that is a pipe) closes, when its parent dies,
or when a service dies; and leaves no process behind.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import select
import signal
import socket
import stat
import sys
from functools import partial

from ldfi.demo import devices, serve
from ldfi.demo.launcher import Launcher, listen, publish, wait_until_healthy
from ldfi.demo.worlds import WORLDS, World

WATCH_SECONDS = 0.25


def main() -> int:
    """Run the demo. Exit status 1 when something died that should not have."""
    options = _options()
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stopping.append(received))
    _reach_loopback_directly()
    launcher = Launcher()
    try:
        ready = _start(launcher, options)
        print(json.dumps(ready), flush=True)  # noqa: T201 - the one line our caller waits for
        return _watch(launcher, stopping, parent=os.getppid())
    except RuntimeError as error:
        sys.stderr.write(f"demo: {error}\n")
        return 1
    finally:
        launcher.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ldfi.demo", description=__doc__)
    parser.add_argument("--base-port", type=int, default=0, help="first port; default: free ones")
    parser.add_argument("--no-devices", action="store_true", help="start the services alone")
    devices.add_options(parser)
    return parser.parse_args()


def _start(launcher: Launcher, options: argparse.Namespace) -> dict[str, object]:
    world = WORLDS[options.world]
    sockets = listen(world.names, options.base_port)
    hosts = publish(sockets)
    for name in world.names:
        importlib.import_module(world.module(name))  # once, here, for all children
    gc.collect()
    gc.freeze()  # what is imported stays: no child ever needs to look through it again
    for together in world.processes:
        launcher.start(together[0], partial(_serve_these, world, together, sockets))
    for listening in sockets.values():
        listening.close()
    wait_until_healthy(hosts, launcher)
    gateway = f"http://{hosts[world.gateway]}"
    if not options.no_devices:
        launcher.start("devices", partial(devices.run, gateway, devices.traffic(options)))
    return {"gateway": gateway, "services": hosts, "pids": [*launcher.children.values()]}


def _serve_these(world: World, names: tuple[str, ...], sockets: dict[str, socket.socket]) -> None:
    """Serve some. Let go of the others' sockets, or nobody notices when one of them dies."""
    for other in sockets.keys() - {*names}:
        sockets[other].close()
    serve.serve(world, {name: sockets[name] for name in names})


def _watch(launcher: Launcher, stopping: list[int], parent: int) -> int:
    """Wait for a reason to stop; return the exit status."""
    watched = [sys.stdin] if _stdin_is_a_pipe() else []
    while not stopping and os.getppid() == parent:
        readable, _, _ = select.select(watched, [], [], WATCH_SECONDS)
        if readable and not os.read(sys.stdin.fileno(), 4096):
            return 0
        if stopping:
            break
        if dead := launcher.ended():
            sys.stderr.write(f"demo: ended by itself: {dead}\n")
            return 1
    names = [signal.Signals(number).name for number in stopping]
    sys.stderr.write(f"demo: stopped by {', '.join(names) or 'the end of its parent'}\n")
    return 0


def _stdin_is_a_pipe() -> bool:
    """Return whether standard input can say that its other end closed: only a pipe can; a terminal
    may stay silent and /dev/null is always at its end."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _reach_loopback_directly() -> None:
    """Keep spans for a collector on this machine away from a proxy of the environment."""
    for name in ("NO_PROXY", "no_proxy"):
        entries = filter(None, (os.environ.get(name), "127.0.0.1", "localhost"))
        os.environ[name] = ",".join(entries)


if __name__ == "__main__":
    sys.exit(main())
