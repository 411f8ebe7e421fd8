"""One Redis node: the server as a child, which ends when whoever started this is gone.

python redis_node.py PORT FOLDER [PRIMARY_PORT]

With an append-only file, or a primary that comes back would come back empty, and its replicas would
follow it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path


def command(port: str, folder: str, primary: str | None) -> list[str]:
    """Return what starts the server."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    follows = ["--replicaof", "127.0.0.1", primary] if primary else []
    return [
        *("redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", folder),
        *("--appendonly", "yes", "--save", "", "--logfile", "redis.log", *follows),
    ]


def main() -> None:
    """Serve until told to stop, or left alone."""
    port, folder, *primary = sys.argv[1:]
    server = subprocess.Popen(
        command(port, folder, primary[0] if primary else None), stdin=subprocess.DEVNULL
    )

    def left_alone() -> None:
        sys.stdin.read()
        server.terminate()

    threading.Thread(target=left_alone, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    raise SystemExit(server.wait())


if __name__ == "__main__":
    main()
