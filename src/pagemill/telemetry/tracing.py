"""Traces by OpenTelemetry, through gateway, worker and engine; costs next to nothing until it is configured.

Contexts pass between processes as the two headers of W3C Trace Context (https://www.w3.org/TR/trace-context/).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pagemill.domain.errors import MissingDependencyError

_HEADERS = ("traceparent", "tracestate")
_MOST_BYTES = 1024


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Where a trace goes on: the value of the header `traceparent`; empty where there is none."""

    traceparent: str = ""
    tracestate: str = ""

    @classmethod
    def of_headers(cls, headers: Mapping[str, str]) -> TraceContext:
        """From the headers of a request; what is too long to be one is left out."""
        values = [headers.get(name, "") for name in _HEADERS]
        return cls(*(value if len(value) <= _MOST_BYTES else "" for value in values))

    def as_headers(self) -> dict[str, str]:
        """As headers, without empty ones."""
        pairs = zip(_HEADERS, (self.traceparent, self.tracestate), strict=True)
        return {name: value for name, value in pairs if value}


class _State:
    """The process's tracing, nothing until `configure_tracing`: like logging, it is one for the process."""

    tracer: Any = None
    provider: Any = None
    propagator: Any = None


def configure_tracing(endpoint: str, service: str, version: str) -> None:
    """Sends the spans of this process to a collector; only entry points call it.

    Args:
        endpoint: Base URL of an OTLP collector over HTTP, e.g. http://127.0.0.1:4318.
        service: Name of the service in the traces.
        version: Its version.

    Raises:
        MissingDependencyError: OpenTelemetry is not installed.
    """
    try:
        # An extra, and slow to import.
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError("Traces need OpenTelemetry.", "pip install 'pagemill[otel]'.") from error
    provider = TracerProvider(resource=Resource.create({"service.name": service, "service.version": version}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")))
    _State.provider = provider
    _State.propagator = TraceContextTextMapPropagator()
    _State.tracer = provider.get_tracer("pagemill", version)


def shutdown_tracing() -> None:
    """Sends what is left, and traces no more."""
    provider, _State.provider, _State.tracer = _State.provider, None, None
    if provider is not None:
        provider.shutdown()


@contextlib.contextmanager
def span(name: str, parent: TraceContext | None = None, **attributes: str | float | bool) -> Iterator[None]:
    """A span around a block; an error that leaves the block is noted in it.

    Args:
        name: What is done, e.g. `page.render`.
        parent: Where the trace comes from; by default the span around this one.
        **attributes: Facts about it, with `_` for `.` in their names.
    """
    if _State.tracer is None:
        yield
        return
    context = None
    if parent is not None and parent.traceparent:
        context = _State.propagator.extract(parent.as_headers())
    named = {f"pagemill.{key.replace('_', '.')}": value for key, value in attributes.items()}
    with _State.tracer.start_as_current_span(name, context=context, attributes=named):
        yield


def current_context() -> TraceContext:
    """Where the trace goes on from here; empty where none is under way."""
    return TraceContext.of_headers(outgoing_headers())


def outgoing_headers() -> dict[str, str]:
    """Headers for a request that belongs to the current span; empty where there is none."""
    if _State.tracer is None:
        return {}
    headers: dict[str, str] = {}
    _State.propagator.inject(headers)
    return headers
