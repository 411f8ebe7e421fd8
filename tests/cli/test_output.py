"""Output that nobody reads to its end, and commands that are interrupted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from ldfi.cli import exits
from ldfi.cli.output import Output, OutputClosed, last_words
from tests.kit.cli import PROGRAM


def a_pipe_that_nobody_reads() -> TextIO:
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w")


def test_a_reader_who_left_ends_the_command_once_and_quietly() -> None:
    with a_pipe_that_nobody_reads() as stream:
        output = Output(stream)
        with pytest.raises(OutputClosed) as ended:
            output.write("x" * 100_000)
        assert ended.value.code == exits.BROKEN_PIPE
        output.write("more")
        output.flush()


def test_what_is_said_last_hides_no_verdict() -> None:
    with a_pipe_that_nobody_reads() as stream, last_words():
        Output(stream).write("x" * 100_000)


@pytest.mark.parametrize("words", [("--help",), ("config", "table"), ("scenario", "schema")])
def test_head_is_no_failure_that_was_found(words: tuple[str, ...]) -> None:
    with a_pipe_that_nobody_reads() as out:
        done = subprocess.run(
            [*PROGRAM, *words], stdout=out, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode in {exits.FINE, exits.BROKEN_PIPE}, done.stderr
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "config", "table"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        exits.USAGE,
        "ldfi: the output cannot be written: the disk is full\n",
    )


def test_ctrl_c_is_130_wherever_it_comes() -> None:
    script = (
        "import ldfi.cli.main as m; from ldfi.cli.__main__ import main\n"
        "def interrupted(**_): raise KeyboardInterrupt\n"
        "m.app = interrupted; main()"
    )
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (exits.INTERRUPTED, "")
