"""`pagemill engines`: what can read pages here."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from pagemill.cli.local_engine import plan_engine
from pagemill.engines import available_engines
from pagemill.settings import load_settings


def engines_command() -> None:
    """Lists the engines that are installed, and which one `convert` takes with these settings."""
    console = Console()
    table = Table()
    table.add_column("Engine")
    table.add_column("From")
    for name, point in sorted(available_engines().items()):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        table.add_row(name, package)
    console.print(table)
    console.print(plan_engine(load_settings()).choice.reason, highlight=False, markup=False)
