"""The page of generated clients, typed as it stands, against a service that has a past."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldfi.testing.live_service import served
from tests.docs.test_site import DOCS, blocks
from tests.kit import needs
from tests.kit.service import GIVEN, live_through, service

pytestmark = pytest.mark.languages

PAGE = DOCS / "howto" / "clients.md"
FETCH, PYTHON, TYPESCRIPT = blocks(PAGE, "sh")


def said_last(true: str, nothing: str) -> list[str]:
    """What either program prints last: names are those that were asked for, and a halt ends."""
    return [f"campaign nightly again {true}", f"halted checkout is slow {nothing}"]


@pytest.fixture
def at(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder, and the environment of a shell in it. What pip is to install goes there, too."""
    url = f"sqlite:///{tmp_path / 'x.sqlite3'}"
    live_through(url)
    tools = tmp_path / "tools"
    binaries = (str(tools / "bin"), str(Path(sys.executable).parent), os.environ["PATH"])
    with served(service(url)) as address:
        yield (
            tmp_path,
            os.environ
            | {
                "LDFI_URL": address,
                "LDFI_TOKEN": GIVEN["operator"],
                "NO_PROXY": "127.0.0.1",
                "PATH": os.pathsep.join(binaries),
                "PIP_TARGET": str(tools),
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                "PYTHONPATH": str(tools),
            },
        )


def typed(text: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def reached(text: str, folder: Path, environment: dict[str, str]) -> None:
    """Install the generator; without a registry, skip on a laptop, and fail in CI."""
    try:
        typed(text, folder, environment)
    except AssertionError as error:
        needs.lacking(f"the generator cannot be installed here: {str(error)[-300:]}")


@pytest.mark.timeout(300)
def test_the_python_client_works_as_the_page_says(at: tuple[Path, dict[str, str]]) -> None:
    needs.program("curl")
    install, generate = PYTHON.strip().splitlines()
    typed(FETCH, *at)
    reached(install, *at)
    typed(generate, *at)
    (program,) = blocks(PAGE, "python")
    (at[0] / "nightly.py").write_text(program, encoding="utf-8")

    said = typed("python nightly.py", *at).splitlines()

    assert said[-2:] == said_last("True", "None")
    assert any(line.startswith("class GET /") for line in said)


@pytest.mark.timeout(300)
def test_the_typescript_client_works_as_the_page_says(at: tuple[Path, dict[str, str]]) -> None:
    for program in ("curl", "node", "npm"):
        needs.program(program)
    install, rest = TYPESCRIPT.split("npx", 1)
    (at[0] / "package.json").write_text('{"type": "module", "private": true}', encoding="utf-8")
    (program,) = blocks(PAGE, "ts")
    (at[0] / "nightly.ts").write_text(program, encoding="utf-8")
    typed(FETCH, *at)
    reached(install, *at)

    said = typed(f"npx{rest}", *at).splitlines()

    assert said[-2:] == said_last("true", "null")
    assert any(line.startswith("class GET /") for line in said)
