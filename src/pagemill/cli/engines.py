"""`pagemill engines`: what can read pages here."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from pagemill.api import choose_engine
from pagemill.engines import available_engines


def engines_command() -> None:
    """Lists the engines that are installed, and which one `auto` takes."""
    console = Console()
    table = Table()
    table.add_column("Engine")
    table.add_column("From")
    for name, point in sorted(available_engines().items()):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        table.add_row(name, package)
    console.print(table)
    console.print(f"auto -> {choose_engine().reason}", highlight=False)
