"""The command line's frame: commands, errors, exit statuses."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.console import Console

from pagemill._version import __version__
from pagemill.cli.convert import convert_command
from pagemill.cli.engines import engines_command
from pagemill.cli.exit_codes import ExitCode, exit_code_of_error
from pagemill.cli.gateway import gateway_command
from pagemill.cli.keys import keys_app
from pagemill.cli.serve import serve_command
from pagemill.domain.errors import PagemillError

app = typer.Typer(
    name="pagemill",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    # Typer's own choice, rich, takes "[default: ...]" in a help text for a style and leaves it out.
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="PDFs and scans to Markdown.",
)
app.command("convert")(convert_command)
app.command("engines")(engines_command)
app.command("serve")(serve_command)
app.command("gateway")(gateway_command)
app.add_typer(keys_app, name="keys")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pagemill {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Runs the command line; the process's exit status is that of `ExitCode`."""
    try:
        app()
    except PagemillError as error:
        # Commands in a remedy are there to be copied: only the terminal may break lines.
        Console(stderr=True).print(f"Error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(exit_code_of_error(error))
    except BrokenPipeError:
        # The reader of our output has gone; Python would complain once more while it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILURE)
