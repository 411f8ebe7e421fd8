"""Writes the pages of the reference from the code: the command line and the HTTP API.

Of other pages it writes what stands between two marks (:data:`SECTIONS`). And it copies
``kinds.json`` to where other languages have it.

python docs/generate.py            writes docs/reference/cli.md and api.md, and the sections
python docs/generate.py --check    exit code 1 when they are not what the code says
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, ParameterInfo

from ldfi.cli.commands import COMMANDS
from ldfi.cli.help import readable
from ldfi.cli.local_time import with_utc
from ldfi.experiments.api.app import create_app
from ldfi.experiments.cluster.service import Service
from ldfi.experiments.cluster.tokens import Tokens
from ldfi.experiments.domain.gates.guards import CONTROL_GROUP, GUARDS
from ldfi.experiments.notify.notification import Notification
from ldfi.experiments.store.notifications import EVENTS
from ldfi.fit.protocol.kinds import LATE, RECORDS, VERSIONS
from ldfi.scenarios import scenario
from tests.fit.clients.proofs import proved, tables
from tests.fit.clients.seen_of_kinds import SAME

DOCS = Path(__file__).parent
HERE = DOCS / "reference"
KINDS = DOCS.parent / "fit" / "protocol" / "kinds.json"
COPIES = [
    DOCS.parent / "fit" / each / "kinds.json"
    for each in ("go", "js", "java/src/main/resources/dev/ldfi/fit")
]
"""Other languages' own, which their packages hold."""
MADE = "<!-- made by docs/generate.py: change the code, not this page -->"
END = "<!-- end of what docs/generate.py makes -->"
DOCUMENT: dict[str, Any] = create_app(Service(Tokens(""), "sqlite://")).openapi()
METHODS = ("get", "post", "put", "patch", "delete")


def pages() -> dict[Path, str]:
    """Every generated page, and every page of which a section is."""
    made = {"cli.md": command_line(), "api.md": api(), "formats.md": formats()}
    whole = {HERE / name: "\n".join([MADE, "", *lines, ""]) for name, lines in made.items()}
    whole |= {DOCS / name: _with_sections(name, each) for name, each in SECTIONS.items()}
    return whole | dict.fromkeys(COPIES, KINDS.read_text(encoding="utf-8"))


def _with_sections(page: str, made: Iterable[Callable[[], list[str]]]) -> str:
    """Keep a page as it is, but with the lines that each of these makes between its two marks."""
    written, rest = "", (DOCS / page).read_text(encoding="utf-8")
    for lines in made:
        before, begin, within = rest.partition(MADE)
        _, end, rest = within.partition(END)
        if not end:
            raise ValueError(f"{page} has no section between {MADE!r} and {END!r}")
        written += "\n".join([before + begin, "", *lines(), "", end])
    return written + rest


def guards() -> list[str]:
    """List the guards, and when each is asked."""
    rows = [
        (each.name, each.meaning, "yes" if each.early else "", "yes", "yes" if each.armed else "")
        for each in GUARDS
    ]
    lines = [
        "| guard | what must hold | before anything is proposed | when it is armed | while armed |",
        "|---|---|---|---|---|",
    ]
    return lines + [f"| {' | '.join(row)} |" for row in [*rows, (*CONTROL_GROUP, "", "", "yes")]]


def meanings() -> list[str]:
    """Show what each kind of fault is."""
    lines = ["| kind | what happens |", "|---|---|"]
    return lines + [f"| {_form(word)} | {each['meaning']} |" for word, each in RECORDS.items()]


def _form(word: str) -> str:
    argument = RECORDS[word].get("argument", {})
    if "as" in argument:
        return f"`{word}:{argument['as']}`"
    first, *others = argument.get("among", [""])
    return ", ".join([f"`{word}:{first}`" if first else f"`{word}`", *map(_code, others)])


def kinds() -> list[str]:
    """Show what callers see of the kinds of fault, as far as a test proves it."""
    by = proved()
    several, by_themselves = tables()
    alike = ", ".join(f"{client} as {other}" for client, other in SAME.items())
    said = f"A number is the status of an answer. Callers of {alike} see the same."
    return [*_seen(several, by), "", said, "", *_seen(by_themselves, by)]


def _seen(
    clients: Mapping[str, Mapping[str, str]], proved_by: Mapping[tuple[str, str], str]
) -> list[str]:
    rows = dict.fromkeys(kind for seen in clients.values() for kind in seen)
    lines = [f"| kind | {' | '.join(clients)} |", f"|---{'|---' * len(clients)}|"]
    for kind in rows:
        cells = (seen.get(kind, "").rpartition(".")[2] for seen in clients.values())
        lines.append(f"| `{kind}` | {' | '.join(_code(cell) if cell else '' for cell in cells)} |")
    tests = ({proved_by[client, kind] for kind in seen} for client, seen in clients.items())
    return [*lines, f"| proved by | {' | '.join(_code(', '.join(sorted(e))) for e in tests)} |"]


def grammar() -> list[str]:
    """Show how failure contexts write each kind of fault, and since which version."""
    lines = ["```abnf", f"later      = {' / '.join(map(_quoted, VERSIONS[1:]))}"]
    for version in VERSIONS[1:]:
        words = [w for w, each in RECORDS.items() if max(each["version"], 2) == int(version)]
        lines += ["", f"; from version {version} on"]
        for word in words:
            begins = "kind       = " if word == "error" else "kind       =/"
            lines.append(f"{begins} {_notation(word)}")
    return [*lines, "```"]


def _notation(word: str) -> str:
    argument = RECORDS[word].get("argument", {})
    if word in LATE:
        return f'%s"{word}-" milliseconds'
    if "among" in argument:
        return f'%s"{word}-" ( {" / ".join(f"%s{_quoted(each)}" for each in argument["among"])} )'
    return f'%s"{word}-" {argument["abnf"]}' if argument else f'%s"{word}"'


def _quoted(text: str) -> str:
    return f'"{text}"'


SECTIONS = {
    "failure-context.md": (grammar,),
    "injection-points.md": (meanings, kinds),
    "safety.md": (guards,),
}


def command_line() -> list[str]:
    """Write down every command with its arguments and options."""
    lines = [
        "# Commands and options",
        "",
        "All of `ldfi --help`. What the commands are for, and what their exit codes mean:",
        "[cli.md](../cli.md).",
    ]
    for path, callback in sorted(_commands(), key=lambda item: item[0]):
        parameters = list(_parameters(callback))
        usage = " ".join([path, *(each.usage for each in parameters if each.usage)])
        lines += ["", f"## `{path}`", "", _prose(inspect.getdoc(callback)), "", f"`{usage}`", ""]
        lines += ["| option | meaning | default |", "|---|---|---|"]
        lines += [
            f"| {_cell(each.name)} | {_cell(each.help)} | {_cell(each.default)} |"
            for each in parameters
        ]
    return lines


@dataclass(frozen=True)
class Parameter:
    """A row of a command's table. ``usage``: how it stands in a call, if it has to."""

    name: str
    help: str
    default: str
    usage: str = ""


def _commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    for row in COMMANDS:
        found = row.found()
        if isinstance(found, typer.Typer):
            yield from _commands_of(readable(found), f"ldfi {row.name}")
        else:
            yield f"ldfi {row.name}", with_utc(found)


def _commands_of(group: typer.Typer, path: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    for command in group.registered_commands:
        if command.callback is not None:
            name = command.name or command.callback.__name__.replace("_", "-")
            yield f"{path} {name}", command.callback
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            yield from _commands_of(inner.typer_instance, f"{path} {inner.name}")


def _parameters(callback: Callable[..., Any]) -> Iterator[Parameter]:
    hints = get_type_hints(callback, include_extras=True)
    for name, parameter in inspect.signature(callback).parameters.items():
        told = next(each for each in hints[name].__metadata__ if isinstance(each, ParameterInfo))
        kind, required = _kind(hints[name].__origin__), parameter.default is parameter.empty
        value = told.metavar or kind or name.upper()
        if isinstance(told, ArgumentInfo):
            shown = value if required else f"[{value}]"
            default = "required" if required else _default(told, parameter.default)
            yield Parameter(_code(value), told.help or "", default, shown)
            continue
        text = " ".join(filter(None, [_flag(name, told, kind), kind and value]))
        usage = text if required and not told.envvar else ""
        default = "required" if usage else _default(told, parameter.default)
        yield Parameter(_code(text), told.help or "", default, usage)


def _flag(name: str, told: ParameterInfo, kind: str) -> str:
    """Write a flag as it is typed. In ``Annotated``, Typer keeps its first name as ``default``."""
    names = [each for each in (told.default, *(told.param_decls or ())) if isinstance(each, str)]
    long = f"--{name.replace('_', '-')}"
    return names[0] if names else long if kind else f"{long}/--no-{long[2:]}"


def _kind(annotation: Any) -> str:
    """Return what stands for a value: its choices, or its type; nothing for a switch."""
    plain = [each for each in get_args(annotation) if each is not type(None)]
    if get_origin(annotation) is Literal:
        return "|".join(map(str, plain))
    if plain:
        return _kind(plain[0])
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(each.value) for each in annotation)
    names = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "FILE", bool: ""}
    return names.get(annotation, "TEXT")


def _default(told: ParameterInfo, default: Any) -> str:
    if isinstance(told.show_default, str):
        return _code(told.show_default)
    given = default is not inspect.Parameter.empty and default not in {None, False}
    shown = _code(getattr(default, "value", default)) if given and default is not True else ""
    if default is True:
        shown = "yes"
    return ", else ".join(filter(None, [_code(told.envvar) if told.envvar else "", shown]))


def api() -> list[str]:
    """Write down every operation and every document of the API."""
    lines = [
        "# HTTP API",
        "",
        "All of `GET /api/v1/openapi.json`, the document from which clients can be generated.",
        "Errors are `problem+json` ([problems.md](../problems.md)). Every operation but the health",
        "checks wants a bearer token with the role that it names. Times are Unix seconds.",
        "",
        "What is read can be posted: a campaign, an experiment, a maintenance window, a token or a",
        "replay, as `GET` gives it, makes another one like it. What the service fills in (ids,",
        "times, states) is left out; what nobody knows is refused as ever.",
        "",
        "## Old forms",
        "",
        "They are done as ever. The answer then has the header `Deprecation` (RFC 9745).",
        "",
        "| before | now |",
        "|---|---|",
        "| settings of a campaign, an experiment, a forecast or a verification beside the rest: "
        '`{"members": 7}` | within `settings`, as a `definition` has them: '
        '`{"settings": {"members": 7}}` |',
        '| `POST …/acknowledge` with `{"reason": …}` | `{"note": …}`, as a finding has it |',
        '| `POST …/link` with `{"url": …}` | `{"tracker_url": …}`, as a finding has it |',
        "",
        "A list says under `cursor` where it goes on, which is also what the parameter is called.",
        "Its old name `next` is there as well, and says the same.",
    ]
    tag = ""
    for path, item in DOCUMENT["paths"].items():
        for method in filter(item.get, METHODS):
            operation = item[method]
            if operation["tags"][0] != tag:
                tag = operation["tags"][0]
                lines += ["", f"## {tag}"]
            lines += ["", f"### `{method.upper()} {path}`", "", *_operation(operation)]
    lines += ["", "## Documents"]
    for name, schema in sorted(DOCUMENT["components"]["schemas"].items()):
        if schema.get("properties"):
            lines += ["", f"### {name}", "", _prose(schema.get("description")), ""]
            lines += ["| field | type | meaning |", "|---|---|---|", *_fields(schema)]
    return lines


def formats() -> list[str]:
    """Return where each format is described, and the fields of those that are read from the
    code."""
    lines = [
        "# Formats",
        "",
        "| format | who writes it | who reads it | described in |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in FORMATS),
        "",
        "## Scenario",
        "",
        "As JSON Schema: `ldfi scenario schema`, or `docs/scenario.schema.json`.",
    ]
    schema = scenario.schema()
    for name, part in [("scenario", schema), *schema.get("$defs", {}).items()]:
        if part.get("properties"):
            lines += ["", f"### {name}", "", _prose(part.get("description")), ""]
            lines += ["| field | type | meaning |", "|---|---|---|", *_fields(part)]
    lines += ["", "## Notification", "", _prose(inspect.getdoc(Notification)), ""]
    lines += ["| field | type |", "|---|---|"]
    lines += [f"| `{each.name}` | {_cell(each.type)} |" for each in fields(Notification)]
    return [*lines, "", f"Events: {', '.join(map(_code, EVENTS))}."]


FORMATS = (
    ("failure context", "edges, `ldfi reproduce`", "services", "[here](../failure-context.md)"),
    ("traces: OTLP, Jaeger, Zipkin", "your services", "`ldfi`", "[here](../traces.md)"),
    ("device metrics", "devices", "`ldfi`", "[HTTP API](api.md#devicemetric)"),
    ("rules, as a lease", "`ldfi`", "edges", "[here](../edge.md#what-it-sends-and-receives)"),
    ("messages in Kafka", "Collector, `ldfi`", "ingest workers", "[here](../streams.md)"),
    ("scenario", "`ldfi findings scenario`", "`ldfi`, people", "below"),
    ("notification", "`ldfi`", "webhooks, Slack", "[here](../notifications.md), and below"),
    ("faults in a mesh", "`ldfi export`", "Envoy, Istio", "[here](../mesh.md)"),
    (
        "certificate",
        "`ldfi certificate show`",
        "`ldfi certificate check`",
        "[here](../certificates.md)",
    ),
    (
        "certificate with its runs and the signed head",
        "`ldfi certificate get`",
        "`ldfi certificate verify`, `python -m ldfi.checker`",
        "[here](../certificates.md)",
    ),
    ("errors", "`ldfi`", "clients", "[here](../problems.md)"),
)


def _operation(operation: dict[str, Any]) -> Iterator[str]:
    yield _prose(operation["description"])
    body = operation.get("requestBody", {}).get("content", {})
    for kind, content in body.items():
        yield ""
        yield f"Body: {_type(content.get('schema', {}))} as `{kind}`."
    good = {code: answer for code, answer in operation["responses"].items() if code < "400"}
    for code, answer in good.items():
        documents = [_type(each.get("schema", {})) for each in answer.get("content", {}).values()]
        yield ""
        yield f"Answer {code}: {' or '.join(documents) or answer.get('description', '')}."
    rows = [
        f"| `{each['name']}` | {each['in']} | {_cell(_meaning(each))} |"
        for each in operation.get("parameters", [])
    ]
    if rows:
        yield from ("", "| parameter | in | meaning |", "|---|---|---|", *rows)


def _meaning(parameter: dict[str, Any]) -> str:
    told = str(parameter.get("description") or parameter.get("schema", {}).get("description", ""))
    return told + (" Required." if parameter.get("required") and parameter["in"] != "path" else "")


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        must = " (required)" if name in required else ""
        yield f"| `{name}` | {_cell(_type(field))}{must} | {_cell(field.get('description', ''))} |"


def _type(schema: dict[str, Any]) -> str:
    """Describe a schema in a few words, with a link where it has a name."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{_anchor(name)})" if _shown(schema["$ref"]) else str(name)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(map(_type, schema[several]))
    if "enum" in schema:
        return " or ".join(_code(each) for each in schema["enum"])
    if "const" in schema:
        return _code(schema["const"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    named = schema.get("type", "anything")
    return " or ".join(named) if isinstance(named, list) else str(named)


def _shown(reference: str) -> bool:
    """Return whether what is referred to has a section of its own."""
    kind, name = reference.split("/")[-2:]
    kinds = {"schemas": DOCUMENT["components"]["schemas"], "$defs": scenario.schema()["$defs"]}
    return bool(kinds[kind].get(name, {}).get("properties"))


def _anchor(heading: str) -> str:
    """Turn a heading into its anchor, as mkdocs does."""
    kept = (c if c.isalnum() or c in "_- " else "" for c in heading.lower())
    return "".join(kept).strip().replace(" ", "-")


def _code(text: Any) -> str:
    return f"`{text}`"


def _prose(text: str | None) -> str:
    """Keep a text as it is, but what looks like a tag is not one."""
    return (text or "").strip().replace("<", "&lt;")


def _cell(text: Any) -> str:
    return " ".join(str(text or "").split()).replace("|", "\\|").replace("<", "&lt;")


def main() -> int:
    """Write the pages, or say which are not in step."""
    stale = [
        path
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        if "--check" not in sys.argv:
            path.write_text(pages()[path], encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.stderr.write(
            f"not what the code says: {', '.join(each.name for each in stale)}; "
            "run `python docs/generate.py`\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
