"""What a service is made of is one hash: it changes with everything that was declared, only."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.explore.external.code import SKIPPED, Unmapped, code_digest
from ldfi.explore.external.services import Service, Services
from ldfi.explore.pytest.marker import Bounds
from ldfi.explore.pytest.survived_files import (
    basis_of_command,
    keep_survived,
    read_survived,
    survived_file,
)
from tests.explore.external.test_services import service as answering

NAMES = st.sampled_from(["a.py", "b.py", "d/a.py", "d/e/c.txt"])
TREES = st.dictionaries(NAMES, st.binary(max_size=3), min_size=1)


def written(tree: dict[str, bytes], folder: Path) -> None:
    for name, content in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def digest_of(tree: dict[str, bytes]) -> str:
    with TemporaryDirectory() as folder:
        written(tree, Path(folder))
        return code_digest(["."], Path(folder))


@given(TREES, TREES)
def test_trees_have_the_same_hash_where_they_are_the_same(
    a: dict[str, bytes], b: dict[str, bytes]
) -> None:
    assert (digest_of(a) == digest_of(b)) == (a == b)


def test_what_machines_make_is_left_out(tmp_path: Path) -> None:
    written({"a.py": b"1"}, tmp_path)
    before = code_digest(["."], tmp_path)

    written({f"{name}/x": b"2" for name in SKIPPED}, tmp_path)

    assert code_digest(["."], tmp_path) == before


def test_what_cannot_be_mapped_is_said(tmp_path: Path) -> None:
    written({"d/a.py": b"1"}, tmp_path)
    (tmp_path / "linked").symlink_to(tmp_path / "d")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()

    for code, why in (
        ("nothing", "there is nothing at"),
        ("empty", "there is nothing at"),
        (".", "is a link to a folder"),
    ):
        with pytest.raises(Unmapped, match=why):
            code_digest([code], tmp_path)
    (tmp_path / "linked").unlink()
    with pytest.raises(Unmapped, match="cannot be read"):
        code_digest(["."], tmp_path)


NOBODY = 65534


@contextmanager
def without_privileges() -> Iterator[None]:
    """Be nobody for a while: whoever is root may read everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.parametrize(
    ("shut", "mode"),
    [(shut, mode) for shut in ("d", "d/e") for mode in (0o000, 0o400, 0o100)] + [("d/e/b.py", 0)],
)
def test_what_may_not_be_read_is_said_and_not_left_out(shut: str, mode: int) -> None:
    """Neither a folder that cannot be listed, nor one whose files cannot be looked at."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        written({"a.py": b"1", "d/a.py": b"2", "d/e/b.py": b"3"}, Path(folder))
        owned = [folder, *(str(each) for each in Path(folder).rglob("*"))]
        for each in owned if os.geteuid() == 0 else []:
            os.chown(each, NOBODY, -1)
        (Path(folder) / shut).chmod(mode)
        try:
            with without_privileges(), pytest.raises(Unmapped, match="cannot be read"):
                code_digest(["."], Path(folder))
            if mode != 0o100:  # there, who knows a name may still read it
                with without_privileges(), pytest.raises(Unmapped, match="cannot be read"):
                    code_digest(["d/e/b.py"], Path(folder))
        finally:
            (Path(folder) / shut).chmod(0o700)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("code", [".", "odd"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_is_no_file_is_no_code(kind: str, code: str, tmp_path: Path) -> None:
    """Whoever opens a pipe waits for its writer, and a device may never end."""
    written({"a.py": b"1"}, tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "pipe":
            os.mkfifo(tmp_path / "odd")
        elif kind == "socket":
            listener.bind(str(tmp_path / "odd"))
        else:
            (tmp_path / "odd").symlink_to("/dev/zero")

        with pytest.raises(Unmapped, match=r"odd is neither a file nor a folder"):
            code_digest([code], tmp_path)


def test_whether_a_file_can_be_run_is_part_of_it(tmp_path: Path) -> None:
    written({"run.sh": b"1"}, tmp_path)
    digests = []
    for mode in (0o644, 0o755, 0o640, 0o750):
        (tmp_path / "run.sh").chmod(mode)
        digests.append(code_digest(["."], tmp_path))

    assert digests[0] != digests[1]
    assert digests[:2] == digests[2:], "who else may read it depends on whose checkout it is"


def test_a_service_is_also_how_it_is_started_and_which_image() -> None:
    image = f"ratings@sha256:{'a' * 64}"
    one = Service("ratings", ["run"], 8081, "/health", {"MODE": "a"}, code=[image])
    others = [
        replace(one, command=["run", "--fast"]),
        replace(one, port=8082),
        replace(one, health=""),
        replace(one, environment={"MODE": "b"}),
        replace(one, code=[f"ratings@sha256:{'b' * 64}"]),
    ]

    assert len({each.digest() for each in (one, *others)}) == 6
    with pytest.raises(Unmapped, match="without code="):
        replace(one, code=[]).digest()
    with pytest.raises(Unmapped, match="nothing at"):
        replace(one, code=["ratings:latest"]).digest()  # a name says nothing of what is in it


def test_only_what_was_started_here_is_known(tmp_path: Path) -> None:
    written({"a.py": b"1"}, tmp_path)
    one = replace(answering(), code=["a.py"], folder=tmp_path)
    two = replace(answering("two"), folder=tmp_path)
    services, others = Services({"TOLD": ""}, tmp_path / "x"), Services({}, tmp_path / "y")
    try:
        services.start(one, two)
        services.start(one)  # again, by another fixture
        others.start(one)
        changed = replace(one, port=answering().port)
        written({"a.py": b"2"}, tmp_path)
        assert [*services.digests] == ["one"]
        assert services.unmapped == {"two": "it was declared without code=[...]"}
        assert "it ran already" in others.unmapped["one"]
        services.start(changed)
        assert "its code has changed" in services.unmapped["one"]
    finally:
        services.close()


def test_what_is_typed_and_declared_of_a_command_is_in_its_key(tmp_path: Path) -> None:
    written({"test.sh": b"1", "page/a.py": b"1"}, tmp_path)
    code = {"": [str(tmp_path / "test.sh")], "page": [str(tmp_path / "page")]}

    def key(
        command: str = "./test.sh",
        asked: str = "",
        bounds: Bounds = Bounds(),  # noqa: B008
    ) -> str:
        return basis_of_command([command], [asked], bounds, code, {}).key

    keys = [key(), key("./other.sh"), key(asked="status==200")]
    keys += [key(bounds=Bounds(max_size=3)), key(bounds=Bounds(seed=1))]
    for name in ("test.sh", "page/a.py"):
        written({name: b"2"}, tmp_path)
        keys.append(key())
    code["ratings"] = [f"sha256:{'a' * 64}"]
    keys.append(key())

    assert len({*keys}) == len(keys)
    assert basis_of_command(["t"], [], Bounds(), code, {}).declared == {"page", "ratings"}
    del code[""]
    assert "--code PATH" in basis_of_command(["t"], [], Bounds(), code, {}).lacking


def test_a_file_for_each_test_is_written_whole(tmp_path: Path) -> None:
    path = survived_file(tmp_path / "lessons", "tests/test_a.py::test_page[1/2]")
    other = survived_file(tmp_path / "lessons", "tests/test_b.py::test_page[1/2]")
    assert path != other
    assert read_survived(path) is None

    assert keep_survived(path, {"format": "x"}) == keep_survived(path, None) == ""

    assert read_survived(path) == {"format": "x"}
    assert [*path.parent.iterdir()] == [path]
    for unreadable in ("{", "[" * 200_000):
        path.write_text(unreadable)
        assert read_survived(path) is None
    assert "x.json cannot be written: " in keep_survived(path / "x.json", {"format": "\ud800"})
