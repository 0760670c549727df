"""The command line."""

from pagemill.cli.app import main

__all__ = ["main"]
