"""Writes docs/reference from the code, so that the two cannot differ; a test runs it with --check.

python docs/generate_reference.py [--check]
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import typer.main
from pydantic import BaseModel

from pagemill.cli.app import app
from pagemill.cli.exit_codes import ExitCode, exit_code_of_error
from pagemill.domain.errors import PagemillError
from pagemill.gateway.errors import status_of
from pagemill.settings import Settings

FOLDER = Path(__file__).parent / "reference"
_TYPES = {
    "str": "text",
    "SecretStr": "text",
    "Path": "path",
    "int": "whole number",
    "float": "number",
    "bool": "`true`, `false`",
}
NOTICE = "<!-- Written by docs/generate_reference.py; do not edit. -->\n\n"


def attribute_docs(owner: type) -> dict[str, str]:
    """Descriptions in the `Attributes:` section of a class's docstring, by name."""
    text = inspect.getdoc(owner) or ""
    section = re.search(r"Attributes:\n(?P<body>(?:[ ]{4}.*\n?|\n)+)", text)
    if section is None:
        return {}
    docs: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(section["body"]).splitlines():
        if match := re.match(r"(\w+): (.*)", line):
            name = match[1]
            docs[name] = match[2]
        elif name:
            docs[name] += " " + line.strip()
    return docs


def type_name(annotation: object) -> str:
    """A type as people write it in a settings file."""
    if annotation is type(None):
        return "nothing"
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return ", ".join(f"`{item.value}`" for item in annotation)
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return ", ".join(f"`{item}`" for item in typing.get_args(annotation))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_name(item) for item in typing.get_args(annotation))
    if origin is tuple:
        return f"list of {type_name(typing.get_args(annotation)[0])}"
    if origin is dict:
        return "table"
    name = getattr(annotation, "__name__", str(annotation))
    return _TYPES.get(name, name)


def default_text(value: object) -> str:
    """A default as TOML would have it."""
    if value is None:
        return "nothing"
    if isinstance(value, enum.Enum):
        return f"`{value.value}`"
    if isinstance(value, tuple):
        return "`[" + ", ".join(f'"{item.value if isinstance(item, enum.Enum) else item}"' for item in value) + "]`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value == {}:
        return "`{}`"
    return f"`{value}`"


def settings_rows(value: object, path: str) -> list[tuple[str, str, str, str]]:
    """Name, type, default and description of each setting below `value`."""
    owner = type(value)
    hints = typing.get_type_hints(owner)
    docs = attribute_docs(owner)
    if isinstance(value, BaseModel):
        docs |= {name: field.description or "" for name, field in owner.model_fields.items()}
        names = list(owner.model_fields)
    else:
        names = [field.name for field in dataclasses.fields(value)]  # type: ignore[arg-type]
    rows = []
    for name in names:
        item = getattr(value, name)
        if dataclasses.is_dataclass(item) or isinstance(item, BaseModel):
            rows += settings_rows(item, f"{path}{name}.")
        else:
            rows.append((f"{path}{name}", type_name(hints[name]), default_text(item), docs.get(name, "")))
    return rows


def settings_page() -> str:
    """docs/reference/settings.md."""
    lines = [
        "# Settings\n",
        "Each setting can stand in a TOML file (`pagemill.toml` in the working folder, or the one named by `--config`)",
        "or in the environment; the command line goes first, then the environment, then the file. `render.long_side`",
        "is written like this:\n",
        "```toml\n[render]\nlong_side = 1540\n```\n",
        "```sh\nexport PAGEMILL_RENDER__LONG_SIDE=1540\n```\n",
        "Unknown names are refused.\n",
        "| setting | value | default | meaning |",
        "|---|---|---|---|",
    ]
    for name, kind, default, text in settings_rows(Settings.model_construct(), ""):
        lines.append(f"| `{name}` | {kind} | {default} | {text} |")
    return "\n".join(lines) + "\n"


def commands_of(command: object, name: str) -> Iterator[tuple[str, typing.Any]]:
    """All commands with their full names, those of groups in place of the group."""
    for child, below in sorted(getattr(command, "commands", {}).items()):
        if hasattr(below, "commands"):
            yield from commands_of(below, f"{name} {child}")
        else:
            yield f"{name} {child}", below


def cli_page() -> str:
    """docs/reference/cli.md."""
    lines = ["# Command line\n"]
    for name, command in commands_of(typer.main.get_command(app), "pagemill"):
        lines += [f"## `{name}`\n", inspect.cleandoc(command.help or "") + "\n"]
        rows = [
            parameter
            for parameter in command.params
            if parameter.name != "help" and not getattr(parameter, "hidden", False)
        ]
        if rows:
            lines += ["| option | meaning |", "|---|---|"]
        for parameter in rows:
            names = ", ".join(f"`{text}`" for text in (*parameter.opts, *parameter.secondary_opts))
            if parameter.param_type_name == "argument":
                names = f"`{(parameter.name or '').upper()}`"
            text = " ".join((getattr(parameter, "help", "") or "").split())
            if parameter.param_type_name == "option" and isinstance(parameter.default, Path):
                text += f"  [default: {parameter.default}]"
            lines.append(f"| {names} | {text} |")
        lines.append("")
    lines += ["## Exit status\n", "| status | meaning |", "|---|---|"]
    source = inspect.getsource(ExitCode)
    for code in ExitCode:
        match = re.search(rf'{code.name} = \d+\n\s+"""(.*?)"""', source)
        lines.append(f"| {code.value} | {match[1] if match else ''} |")
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    """docs/reference/errors.md."""
    lines = [
        "# Errors\n",
        "Every error has a stable code. It stands in the sidecar (`pages[].error.code`), in the events of `--json` and",
        'in the page markers of the Markdown. `--retry-failed` tries failed pages again; "may pass" says where that',
        "is likely to help without changing anything.\n",
        "The service answers a request that fails with the HTTP status that is named, and the code in `error.code`.",
        "What is wrong with a page or a document stands in its job and in its result; asking for these is no failure.",
        "It has three more codes: `not_found` (404, no such path), `method_not_allowed` (405), and `internal_error`",
        "(500, a fault of the service, which its log tells under the request's id).\n",
        "| code | meaning | may pass | exit status | HTTP status |",
        "|---|---|---|---|---|",
    ]

    def walk(kind: type[PagemillError]) -> None:
        for child in kind.__subclasses__():
            if not child.__module__.startswith("pagemill"):
                continue
            text = (inspect.getdoc(child) or "").splitlines()[0]
            error = child("")
            may_pass = "yes" if child.retryable else "no"
            exit_status, status = exit_code_of_error(error).value, status_of(error)
            lines.append(f"| `{child.code}` | {text} | {may_pass} | {exit_status} | {status} |")
            walk(child)

    walk(PagemillError)
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes the pages, or with --check says which are out of date."""
    pages = {"settings.md": settings_page(), "cli.md": cli_page(), "errors.md": errors_page()}
    stale = []
    for name, text in pages.items():
        path = FOLDER / name
        wanted = NOTICE + text
        if "--check" in sys.argv:
            if not path.is_file() or path.read_text(encoding="utf-8") != wanted:
                stale.append(str(path))
        else:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
    for path in stale:
        print(f"{path} is out of date: run python docs/generate_reference.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
