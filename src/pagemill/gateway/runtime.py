"""What the service is made of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request

from pagemill.conversion import ConversionOptions
from pagemill.engines import Engine
from pagemill.gateway.lifecycle import Lifecycle, Streams
from pagemill.gateway.metrics import Metrics
from pagemill.gateway.options import GatewayOptions
from pagemill.jobs.blobs import BlobStore
from pagemill.jobs.gate import Gate
from pagemill.jobs.store import JobStore, KeyStore, RateStore, WebhookStore

_HEAVY_AT_ONCE = 2

EngineStatus = Callable[[], Sequence[Mapping[str, Any]]]
"""Tells of each server of the engine its `url` and state; nothing for engines without servers."""


@dataclass(frozen=True)
class Services:
    """What routes work with.

    Attributes:
        options: How the service is set.
        conversion: How documents are converted where a client says nothing else.
        jobs: Jobs.
        keys: API keys.
        rates: Token buckets.
        webhooks: Calls that are due.
        blobs: Documents and pictures.
        scratch: Folder for what arrives, on the disk of the data folder.
        engine: Reads pages.
        gate: Stands before the engine.
        metrics: Counts.
        engine_status: State of the engine's servers.
        wake: Tells the worker of this process that there is work.
        lifecycle: Whether requests are taken.
        streams: Open event streams.
        heavy: Held by what needs much memory for a moment: documents within JSON, exports that need the whole text.
    """

    options: GatewayOptions
    conversion: ConversionOptions
    jobs: JobStore
    keys: KeyStore
    rates: RateStore
    webhooks: WebhookStore
    blobs: BlobStore
    scratch: Path
    engine: Engine
    gate: Gate
    metrics: Metrics
    engine_status: EngineStatus = lambda: ()
    wake: Callable[[], None] = lambda: None
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    streams: Streams = field(default_factory=Streams)
    heavy: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_HEAVY_AT_ONCE))


def services_of(request: Request) -> Services:
    """Dependency of routes: what they work with."""
    services: Services = request.app.state.services
    return services


ServicesDependency = Annotated[Services, Depends(services_of)]
