"""Documents to Markdown: the pipeline, its results on disk, and the files that come out."""

from pagemill.conversion.enhance import Enhancement
from pagemill.conversion.events import DocumentFinished, DocumentStarted, Event, EventHandler, PageFinished, RunStarted
from pagemill.conversion.options import ConversionOptions, FurniturePolicy, OutputFormat, ReusePolicy
from pagemill.conversion.pipeline import Converter

__all__ = [
    "ConversionOptions",
    "Converter",
    "DocumentFinished",
    "DocumentStarted",
    "Enhancement",
    "Event",
    "EventHandler",
    "FurniturePolicy",
    "OutputFormat",
    "PageFinished",
    "ReusePolicy",
    "RunStarted",
]
