"""Types for PDFium's untyped bindings."""

from __future__ import annotations

from typing import Any, TypeAlias

Handle: TypeAlias = Any
"""A pointer that PDFium gave out."""
