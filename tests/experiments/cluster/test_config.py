from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ldfi.cli.config import app
from ldfi.errors import InvalidConfig, Unreachable
from ldfi.experiments.cluster.config import Config, called_in, owners_in, table, variable
from ldfi.experiments.domain.settings import Limits

SECRET = "hush-0123456789abcdef"
SECRETS = {
    "LDFI_TOKENS": f"admin:{SECRET}",
    "LDFI_DATABASE_URL": f"postgresql+psycopg://kim:{SECRET}@db.example/ldfi",
    "LDFI_MEMBER_KEY": SECRET,
    "LDFI_PROMETHEUS_TOKEN": SECRET,
    "LDFI_WEBHOOK_URL": f"https://hooks.example/{SECRET}",
    "LDFI_WEBHOOK_SECRET": SECRET,
    "LDFI_SLACK_URL": f"https://hooks.slack.example/{SECRET}",
}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable of ours, and a folder without a file of ours."""
    for name in [name for name in os.environ if name.startswith("LDFI_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_without_anything_set_the_defaults_hold() -> None:
    config = Config.load()

    assert config.database_url.get_secret_value() == "sqlite:///ldfi.sqlite3"
    assert config.limits() == Limits()


def test_command_line_variable_secret_file_then_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("ldfi.toml").write_text(
        'host = "file"\nport = 1\nlease = 4\nquiet = 5.0\nprotected_points = ["a>*", "b"]\n'
        f'tokens = "viewer:{SECRET}"\nmember_key = "{SECRET}"\n'
    )
    Path("tokens").write_text(f"operator:{SECRET}\n")
    monkeypatch.setenv("LDFI_TOKENS_FILE", "tokens")
    monkeypatch.setenv("LDFI_PORT", "2")
    monkeypatch.setenv("LDFI_HOST", "variable")
    monkeypatch.setenv("LDFI_LEASE", "")
    config = Config.load(port=3, host=None)

    assert (config.port, config.host, config.lease, config.quiet) == (3, "variable", 4, 5)
    assert config.tokens.get_secret_value() == f"operator:{SECRET}"
    assert config.member_key is not None
    assert config.limits().protected_points == ("a>*", "b")


def test_the_file_may_be_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("port = 7")
    monkeypatch.setenv("LDFI_CONFIG", str(tmp_path / "other.toml"))
    assert Config.load().port == 7

    monkeypatch.setenv("LDFI_CONFIG", "nowhere.toml")
    with pytest.raises(InvalidConfig, match=r"nowhere\.toml"):
        Config.load()


def test_waits_follow_from_how_often_services_export(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Config.load().waiting()
    assert (waiting.quiet, waiting.patience, waiting.request) == (7.0, 14.0, 60.0)
    assert waiting.outcome > waiting.quiet + waiting.request

    monkeypatch.setenv("LDFI_EXPORT_INTERVAL", "30")
    waiting = Config.load().waiting()
    assert (waiting.quiet, waiting.patience, waiting.request) == (42.0, 84.0, 168.0)


def test_times_that_contradict_each_other_are_refused_and_a_hasty_one_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LDFI_QUIET", "2")
    assert Config.load().hasty()
    monkeypatch.setenv("LDFI_EXPORT_INTERVAL", "1")
    assert not Config.load().hasty()
    monkeypatch.setenv("LDFI_EXPORT_INTERVAL", "5")
    with pytest.raises(InvalidConfig, match="before all services have exported"):
        Config.load()
    monkeypatch.setenv("LDFI_EXPORT_INTERVAL", "1")
    monkeypatch.setenv("LDFI_PATIENCE", "1")
    with pytest.raises(InvalidConfig, match="given up before anybody has looked"):
        Config.load()


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1)))
def test_lists_are_json_or_lines(items: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDFI_PROTECTED_CLASSES", json.dumps(items))
        assert Config.load().protected_classes == tuple(items)
        stripped = [item.strip() for item in items if item.strip()]
        if not (stripped and stripped[0].startswith("[")):
            patch.setenv("LDFI_PROTECTED_CLASSES", "\n".join(items))
            assert Config.load().protected_classes == tuple(stripped)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LDFI_PROT", "1", "did you mean LDFI_PORT"),
        ("LDFI_DATABASE", "1", "did you mean LDFI_DATABASE_URL"),
        ("LDFI_TOKES_FILE", "1", "did you mean LDFI_TOKENS_FILE"),
        ("LDFI_PORT_FILE", "1", "LDFI_PORT_FILE"),
        ("LDFI_ZZZ", "1", "ldfi config table"),
        ("LDFI_PORT", "65536", 'port: must be at most 65535, got "65536"'),
        ("LDFI_LEASE", "2.9", 'lease: must be at least 3.0, got "2.9"'),
        ("LDFI_LEASE", "nan", "lease"),
        ("LDFI_QUIET", "x", 'quiet: must be a number, got "x"'),
        ("LDFI_MAX_CONCURRENT", "0", 'max_concurrent: must be at least 1, got "0"'),
        ("LDFI_MEMBERS_PER_DAY", "-1", 'members_per_day: must be at least 0, got "-1"'),
        ("LDFI_PROTECTED_POINTS", "[", "protected_points"),
        ("LDFI_PROTECTED_POINTS", "[1]", "protected_points"),
        ("LDFI_PROMETHEUS_URL", "prometheus:9090", "http://"),
        ("LDFI_GUARDRAILS", "up < 1", "guardrails need prometheus_url"),
        ("LDFI_GUARDRAILS", "up < bool 1", "would always hold"),
        ("LDFI_WEBHOOK_URL", "https://x.example", "webhook_secret"),
        ("LDFI_MEMBER_KEY", "short", "member_key"),
        ("LDFI_MEMBER_KEY", "é" * 33, "64 bytes"),
        ("LDFI_TOKENS", "viewer:short", "ROLE:TOKEN"),
        ("LDFI_DATABASE_URL", "not a url", "sqlite:///"),
        ("LDFI_TOKENS_FILE", "nowhere", "LDFI_TOKENS_FILE cannot be read"),
    ],
)
def test_what_makes_no_sense_is_said(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidConfig) as caught:
        Config.load()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&cache=shared&uri=true"]
)
def test_halt_port_needs_a_persistent_database(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("LDFI_DATABASE_URL", url)
    assert Config.load().halt_port is None
    monkeypatch.setenv("LDFI_HALT_PORT", "8601")
    with pytest.raises(InvalidConfig, match="halt_port requires a persistent database"):
        Config.load()
    monkeypatch.setenv("LDFI_DATABASE_URL", "sqlite:///x.sqlite3")
    assert Config.load().halt_port == 8601


@pytest.mark.parametrize(
    ("given", "port"), [("0", 0), ("4317", 4317), ("off", "off"), ("OFF", "off"), ("", None)]
)
def test_grpc_port_may_be_off(monkeypatch: pytest.MonkeyPatch, given: str, port: object) -> None:
    monkeypatch.setenv("LDFI_GRPC_PORT", given)
    assert Config.load().grpc_port == port


@pytest.mark.parametrize(
    ("given", "said"),
    [(each, "give a port, 0 to 65535, or off") for each in ("-1", "65536", "on", "4317.0")]
    + [("8600", "grpc_port must differ")],
)
def test_wrong_grpc_ports_fail(monkeypatch: pytest.MonkeyPatch, given: str, said: str) -> None:
    monkeypatch.setenv("LDFI_GRPC_PORT", given)
    with pytest.raises(InvalidConfig, match=said):
        Config.load()


@pytest.mark.parametrize("text", ["prot = 1", "limits = {}", "port = ", "[server]\nport = 1"])
def test_a_file_with_anything_unknown_is_refused(text: str) -> None:
    Path("ldfi.toml").write_text(text)
    with pytest.raises(InvalidConfig, match=r"ldfi\.toml"):
        Config.load()


@pytest.mark.parametrize("name", ["guardrails", "kafka", "protected_points", "protected_classes"])
def test_endless_brackets_are_refused_in_words(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with monkeypatch.context() as set_:
        set_.setenv(variable(name), "[" * 200_000)
        with pytest.raises(InvalidConfig, match=name):
            Config.load()
    Path("ldfi.toml").write_text(f"{name} = {'[' * 5_000}")
    with pytest.raises(InvalidConfig, match=r"ldfi\.toml cannot be read"):
        Config.load()


def test_all_faults_are_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LDFI_PORT", "LDFI_LEASE", "LDFI_COLOUR"):
        monkeypatch.setenv(name, "x")
    with pytest.raises(InvalidConfig) as caught:
        Config.load()
    assert len(str(caught.value).splitlines()) == 3


def test_a_secret_in_two_places_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("key").write_text(SECRET)
    monkeypatch.setenv("LDFI_MEMBER_KEY_FILE", "key")
    monkeypatch.setenv("LDFI_MEMBER_KEY", SECRET)
    with pytest.raises(InvalidConfig, match="use one"):
        Config.load()


def test_nothing_secret_is_ever_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    config = Config.load()
    outputs = [CliRunner().invoke(app, words).output for words in (["check"], ["check", "--json"])]

    assert "db.example" in outputs[1]
    for shown in (repr(config), str(config.shown()), str(config.model_dump()), *outputs):
        assert "hush" not in shown


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_no_secret_is_in_an_error(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Not even one that is wrong itself, or stands in a file that is."""
    broken = {"LDFI_TOKENS": f"root:{SECRET}", "LDFI_MEMBER_KEY": "hush"}.get(name, "hush")
    monkeypatch.setenv(name, broken)
    monkeypatch.setenv("LDFI_PORT", "x")
    with pytest.raises(InvalidConfig) as caught:
        Config.load()
    assert "hush" not in str(caught.value) + repr(caught.value.__context__)


def test_check_says_where_options_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("ldfi.toml").write_text("lease = 4\nport = 1")
    Path("key").write_text(SECRET)
    monkeypatch.setenv("LDFI_PORT", "2")
    monkeypatch.setenv("LDFI_MEMBER_KEY_FILE", "key")
    options = json.loads(CliRunner().invoke(app, ["check", "--json"]).output)["options"]

    assert options["lease"] == {"value": 4.0, "from": "ldfi.toml"}
    assert options["port"] == {"value": 2, "from": "LDFI_PORT"}
    assert options["member_key"]["from"] == "LDFI_MEMBER_KEY_FILE"
    assert options["host"]["from"] == "default"
    assert set(options) == set(Config.model_fields)


def test_check_of_what_is_invalid_is_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDFI_PROT", "1")
    done = CliRunner().invoke(app, ["check", "--json"])

    assert isinstance(done.exception, InvalidConfig)
    said = "there is no variable LDFI_PROT; did you mean LDFI_PORT?"
    assert json.loads(done.stdout) == {"valid": False, "errors": [said]}


@pytest.mark.parametrize(
    "url", ["postgresql://h/d", "postgresql+psycopg2://h/d", "mysql://h/d", "x"]
)
def test_a_database_of_another_driver_is_refused(url: str) -> None:
    with pytest.raises(InvalidConfig, match=r"sqlite:/// or postgresql\+psycopg://"):
        Config.load(database_url=url)


def test_check_tries_the_database(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("LDFI_DATABASE_URL", database_url)
    assert CliRunner().invoke(app, ["check", "--connect"]).exit_code == 0


@pytest.mark.parametrize(
    "url", ["sqlite:////nowhere/x", f"postgresql+psycopg://kim:{SECRET}@127.0.0.1:9/x"]
)
def test_a_missing_database_is_unreachable(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("LDFI_DATABASE_URL", url)
    done = CliRunner().invoke(app, ["check", "--connect"])

    assert isinstance(done.exception, Unreachable)
    assert "hush" not in str(done.exception)


def test_the_table_names_every_option() -> None:
    for name, field in Config.model_fields.items():
        assert f"| `{name}` | `{variable(name)}`" in table()
        assert field.description
    assert CliRunner().invoke(app, ["table"]).output.strip() == table()


def test_every_default_passes_its_own_rules() -> None:
    defaults = {name: field.default for name, field in Config.model_fields.items()}
    values = {name: each for name, each in defaults.items() if each is not None}
    assert Config.model_validate(values) == Config.load()
    assert tomllib.loads(f"lease = {Config.load().lease}")["lease"] >= 3


@pytest.mark.parametrize("name", ["owners", "names"])
def test_who_owns_what_and_how_it_is_called_stands_in_files_that_can_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "owners").write_text("checkout @payments\n")
    (tmp_path / "names").write_text('["GET /play"]\nname = "Play"\n')
    monkeypatch.setenv(f"LDFI_{name.upper()}_FILE", str(tmp_path / name))
    config, point = Config.load(), "checkout>http:GET:x/y"
    owners, called = owners_in(config.owners_file), called_in(config.names_file)
    assert (owners.of(point) == ("@payments",)) is (name == "owners")
    assert called.name("GET /play") == ("Play" if name == "names" else "GET /play")

    (tmp_path / name).write_bytes(b"\xff")
    for wrong in (tmp_path / name, tmp_path / "nowhere", tmp_path):
        monkeypatch.setenv(f"LDFI_{name.upper()}_FILE", str(wrong))
        with pytest.raises(InvalidConfig, match=rf"{name}_file.*cannot be read"):
            Config.load()


def test_the_address_of_traces_says_where_the_id_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDFI_TRACE_URL", "https://jaeger.example/trace/{trace_id}")
    assert Config.load().trace_url == "https://jaeger.example/trace/{trace_id}"

    for wrong in ("https://jaeger.example/trace/", "javascript:alert({trace_id})"):
        monkeypatch.setenv("LDFI_TRACE_URL", wrong)
        with pytest.raises(InvalidConfig, match="trace_url"):
            Config.load()
