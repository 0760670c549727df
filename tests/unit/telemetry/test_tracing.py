from __future__ import annotations

import asyncio

from pagemill.telemetry import (
    TraceContext,
    configure_tracing,
    current_context,
    outgoing_headers,
    shutdown_tracing,
    span,
)
from trace_collector import Collector


def test_nothing_is_traced_until_it_is_configured() -> None:
    with span("page.render", page=1):
        assert outgoing_headers() == {}
        assert current_context() == TraceContext()


async def test_spans_reach_the_collector_with_their_parents_and_facts(collector: Collector) -> None:
    configure_tracing(collector.url, "pagemill-test", "1")
    incoming = TraceContext.of_headers({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})

    async def page(number: int) -> None:
        with span("page", page=number):
            await asyncio.sleep(0)

    with span("request", parent=incoming):
        assert outgoing_headers()["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-")
        await asyncio.gather(page(1), page(2))
    shutdown_tracing()
    spans = {(s.name, *(a.value.int_value for a in s.attributes)): s for s in collector.spans()}
    assert set(spans) == {("request",), ("page", 1), ("page", 2)}
    request = spans["request",]
    assert request.parent_span_id.hex() == "b7ad6b7169203331"
    assert all(s.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c" for s in spans.values())
    assert spans["page", 2].parent_span_id == request.span_id


def test_a_context_that_is_too_long_is_left_out() -> None:
    assert TraceContext.of_headers({"traceparent": "0" * 5000, "tracestate": "a=b"}) == TraceContext("", "a=b")
