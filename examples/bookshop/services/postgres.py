"""The shop's PostgreSQL, on loopback at ``PORT``: made anew, with copies of a book in it.

With a file of SQL named behind it, a statement a line, what that says is in it instead. It lives in
this process's group, so whoever kills that kills all of it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))  # the checkout: `deploy` is in no wheel

from deploy.stack.postgresql import Server, installed, unprivileged

STOCK = """\
create table copies (book int primary key, many int);
insert into copies values (17, 3);
"""


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    folder = Path(tempfile.mkdtemp(prefix="bookshop-"))
    try:
        serve(Server(installed(), folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wanted() -> str:
    """Return what is put in."""
    return Path(sys.argv[1]).read_text(encoding="utf-8") if sys.argv[1:] else STOCK


def serve(server: Server) -> None:
    """Fill it by its single-user mode, so that nobody can ask before there is an answer."""
    server.prepare()
    alone = [server.binaries / "postgres", "--single", "-D", server.folder / "data", "postgres"]
    as_other = {"cwd": server.folder, "user": unprivileged()}
    subprocess.run(alone, input=wanted(), text=True, check=True, **as_other)
    reached = ("listen_addresses=127.0.0.1", f"port={os.environ['PORT']}")
    process = subprocess.Popen(server.command(*reached), **as_other)
    try:
        sys.exit(process.wait())
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait()


if __name__ == "__main__":
    main()
