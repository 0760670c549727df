"""Engines: things that turn a page image into text."""

from pagemill.engines.protocol import Engine, EngineCapabilities, EngineHealth
from pagemill.engines.registry import available_engines, create_engine

__all__ = ["Engine", "EngineCapabilities", "EngineHealth", "available_engines", "create_engine"]
