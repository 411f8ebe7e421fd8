"""Whatever strangers wrote stays text in every export: it is read by what will read it for real."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldfi.scenarios.assertion import Expected
from ldfi.scenarios.export import chaosmesh, chaostoolkit, curl, envoy, istio, pytest_file
from ldfi.scenarios.export.mesh import proxy_faults
from ldfi.scenarios.export.program import Program, program
from ldfi.scenarios.scenario import Scenario, of_document

PIECES = [
    *(
        "\n",
        "\r\n",
        "touch OOPS",
        "$(touch OOPS)",
        "`touch OOPS`",
        "${LDFI_TARGET}",
        "'",
        '"',
        '"""',
    ),
    *(
        "\\",
        "\\N{DASH}",
        "#",
        ";",
        "&",
        "|",
        "\0",
        "\x1b[2J",
        "\x85",
        "\u2028",
        "é",
        "😀",
        "@TITLE@",
    ),
    *("---", "- a", ": ", "{", "}", "[1-9]", "*", "!", "&a", "%", "$", "$$", "${context}", "~"),
]
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=6).map("".join)
LINE = HOSTILE.map(lambda text: "".join(text.split())).filter(lambda text: "*" not in text)


def scenario(title: str, path: str, query: str, header: str, point: str, body: str) -> Scenario:
    return of_document(
        {
            "version": 1,
            "id": "a-b_1",
            "title": title[:1000],
            "request_class": {"name": "GET /boot"},
            "request": {
                "method": "GET",
                "path": "/" + path.replace("?", "").replace("#", ""),
                "query": query,
                "headers": {"accept": header},
            },
            "faults": [f"error@api>http:GET:ratings/{point}"],
            "expect": {"body_contains": body or "x"},
            "environment": {"ldfi": "0"},
        }
    )


def cases(check: Callable[..., None]) -> Callable[..., None]:
    """Hostile scenarios, in all places at once; those that no scenario may hold are left out."""
    hostile = 'x\ntouch OOPS #\'"""$(touch OOPS)`touch OOPS`'

    def checked(title: str, path: str, query: str, header: str, point: str, body: str) -> None:
        try:
            made = scenario(title, path, query, header, point, body)
        except Exception:  # noqa: BLE001 - what looks like a secret, for instance
            return
        check(made)

    wrapped = given(HOSTILE, LINE, HOSTILE, HOSTILE, LINE, HOSTILE)(checked)
    wrapped = example(hostile, "a'b", "q='$(touch OOPS)'", hostile, "a'$(touch", hostile)(wrapped)
    return settings(max_examples=15, deadline=None)(wrapped)


def made(this: Scenario) -> Program:
    return program(this, None if "*" not in this.request.target else "/asked")


SHIM = """#!/bin/sh
for word in "$@"; do printf '%s\\0' "$word" >> "$RECORD"; done
printf 'END\\0' >> "$RECORD"
echo "fit=context"
"""


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell")
@pytest.mark.parametrize("target", [None, "http://x/'\"$(touch OOPS)`touch OOPS`\n}; touch OOPS"])
def test_a_shell_runs_two_requests_and_nothing_else(target: str | None) -> None:
    @cases
    def runs(this: Scenario) -> None:
        wanted = made(this)
        with tempfile.TemporaryDirectory() as place:
            for name in ("curl", "ldfi"):
                shim = Path(place, "bin", name)
                shim.parent.mkdir(exist_ok=True)
                shim.write_text(SHIM)
                shim.chmod(0o755)
            script = Path(place, "script.sh")
            script.write_text(curl.script(wanted, target), encoding="utf-8", newline="")
            record, given_target = Path(place, "record"), "http://given/"
            env = {"PATH": f"{place}/bin:/usr/bin:/bin", "RECORD": str(record)}
            env |= {"LDFI_DEVICE": "me"} | ({} if target else {"LDFI_TARGET": given_target})
            done = subprocess.run(
                ["/bin/sh", str(script)], cwd=place, env=env, capture_output=True, check=False
            )
            assert done.returncode == 0, done.stderr
            assert {each.name for each in Path(place).iterdir()} == {"bin", "script.sh", "record"}
            words = record.read_bytes().decode().split("\0")
        asked = [each for each in " ".join(words).split("END") if "-X GET" in each]
        assert len(asked) == 2
        urls = [word for word in words if word.startswith(target or given_target)]
        assert urls == [(target or given_target) + wanted.path] * 2
        assert words.count(f"accept: {wanted.headers['accept']}") == 2
        assert words.count(this.faults[0]) == 1

    runs()


@cases
def test_a_path_is_sent_as_it_is_known(this: Scenario) -> None:
    if "*" not in this.request.target:
        sent = made(this).path
        assert sent.isascii()
        assert sent.isprintable()
        assert " " not in sent
        assert unquote_to_bytes(sent) == unquote_to_bytes(this.request.target)


def _bones(source: str) -> str:
    """What a file does, whatever its texts are."""
    tree: Any = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


PLAIN = scenario("title", "path", "", "text/html", "titles", "body")


@cases
def test_a_test_file_does_what_any_other_does(this: Scenario) -> None:
    source = pytest_file.test_file(made(this))
    source.encode()
    assert _bones(source) == _bones(pytest_file.test_file(made(PLAIN)))
    found: dict[str, Any] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = ast.literal_eval(node.value)
    assert found["FAULTS"] == this.faults
    assert found["HEADERS"] == made(this).headers


@cases
def test_yaml_and_json_say_what_was_meant(this: Scenario) -> None:
    plain = this.model_copy(update={"expect": Expected()})
    documents: list[Any] = [
        chaostoolkit.experiment(made(plain), "http://x"),
        envoy.listener(this.title, "ldfi-proxy", 9002),
        istio.envoy_filter(this.title, "ldfi-proxy", 9002, None, {"app": this.title}),
    ]
    try:
        faults = proxy_faults(this.injected(), 1000)
    except Exception:  # noqa: BLE001 - not every point can be exported
        faults = []
    if faults:
        documents += chaosmesh.resources(this, faults, "default", ("app", "ratings"), 80)
    written = yaml.safe_dump_all(documents, sort_keys=False, width=10**6)
    assert list(yaml.safe_load_all(written)) == documents
    assert json.loads(json.dumps(documents)) == documents
    assert of_document(yaml.safe_load(this.to_yaml())) == this


@cases
def test_chaos_toolkit_puts_nothing_of_its_own_into_what_strangers_wrote(this: Scenario) -> None:
    plain = this.model_copy(update={"expect": Expected()})
    [probe, *_] = chaostoolkit.experiment(made(plain), None)["method"]
    known = {"target": "http://x", "device": "me", "context": "SIGNED"}
    read = {
        name: Template(text).safe_substitute(known)
        for name, text in probe["provider"]["headers"].items()
    }
    assert read["accept"] == made(plain).headers["accept"]
    assert Template(probe["provider"]["url"]).safe_substitute(known).startswith("http://x/")
    assert "SIGNED" not in Template(probe["provider"]["url"]).safe_substitute(known)
