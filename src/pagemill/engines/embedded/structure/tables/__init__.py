"""Tables: found, rebuilt row by row and column by column, and written as Markdown or HTML."""

from pagemill.engines.embedded.structure.tables.find import FoundTable, find_tables
from pagemill.engines.embedded.structure.tables.model import Cell, Table, render_table

__all__ = ["Cell", "FoundTable", "Table", "find_tables", "render_table"]
