"""For those who run the service: whether it lives, whether it can work, what it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from pagemill._version import __version__
from pagemill.domain.errors import PagemillError
from pagemill.gateway.runtime import Services, ServicesDependency
from pagemill.telemetry import get_logger

router = APIRouter(tags=["operation"])

_CHECK_S = 5.0
_PROBE = "probe"

_log = get_logger("pagemill.gateway")


class Live(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """Whether the process can work.

    Attributes:
        checks: For each part `ok`, or what is wrong with it.
    """

    ready: bool
    checks: dict[str, str] = Field(
        description="For each part `ok`, or what is wrong.",
        examples=[{"accepting": "ok", "database": "ok", "blobs": "ok", "engine": "ok"}],
    )


class Version(BaseModel):
    """What runs."""

    version: str
    engine: str
    engine_version: str


@router.get("/health/live", operation_id="live")
async def live() -> Live:
    """Answers as long as the process does."""
    return Live()


@router.get("/health/ready", operation_id="ready", responses={503: {"model": Ready, "description": "Not ready"}})
async def ready(services: ServicesDependency) -> JSONResponse:
    """Whether work can be done here, and if not, why."""
    names = ("database", "blobs", "engine")
    found = await asyncio.gather(
        _check("database", lambda: _database(services)),
        _check("blobs", lambda: _blobs(services)),
        _check("engine", lambda: _engine(services)),
    )
    accepting = "the process is stopping" if services.lifecycle.stopping else "ok"
    checks = {"accepting": accepting, **dict(zip(names, found, strict=True))}
    good = all(text == "ok" for text in checks.values())
    return JSONResponse(Ready(ready=good, checks=checks).model_dump(), status_code=200 if good else 503)


@router.get(
    "/metrics",
    operation_id="metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(services: ServicesDependency) -> Response:
    """Counts for Prometheus. They name no documents and no keys, and need no key."""
    try:
        services.metrics.set_queue(await services.jobs.stats())
    except PagemillError as error:
        _log.warning("queue not counted", error=str(error))
    services.refresh_gauges()
    return Response(services.metrics.render(), media_type=CONTENT_TYPE_LATEST)


@router.get("/version", operation_id="version")
async def version(services: ServicesDependency) -> Version:
    """What runs."""
    return Version(
        version=__version__, engine=services.engine.name, engine_version=services.engine.capabilities.version
    )


async def _check(name: str, check: Callable[[], Awaitable[str]]) -> str:
    try:
        return await asyncio.wait_for(check(), _CHECK_S)
    except asyncio.TimeoutError:
        return f"no answer in {_CHECK_S:g} s"
    except PagemillError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a part is the answer
        _log.exception("check failed in an unexpected way", part=name)
        return f"failed ({type(error).__name__})"


async def _database(services: Services) -> str:
    await services.jobs.stats()
    return "ok"


async def _blobs(services: Services) -> str:
    await services.blobs.get_bytes(_PROBE)
    return "ok"


async def _engine(services: Services) -> str:
    health = await services.engine.health()
    return "ok" if health.ready else health.detail or "not ready"
