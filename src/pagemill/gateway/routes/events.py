"""What happens to a job, as it happens."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from pagemill.domain import JobEvent
from pagemill.domain.errors import PagemillError, QueueFullError
from pagemill.gateway.auth import CallerDependency
from pagemill.gateway.errors import error_responses
from pagemill.gateway.routes.jobs import JobId
from pagemill.gateway.runtime import Services, ServicesDependency
from pagemill.gateway.schemas import moment

router = APIRouter(tags=["jobs"])

_LOOK_S = 0.5
_HEARTBEAT_S = 12.0
_MOST = 500
_RECONNECT_MS = 2000
_FULL_RETRY_S = 10.0

_KINDS = ("queued", "started", "opened", "page", "succeeded", "failed", "cancelled", "retried")
_ENDS = frozenset({"succeeded", "failed", "cancelled"})
_EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string", "enum": list(_KINDS)},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}

EventId = Annotated[int, Header(alias="Last-Event-ID", ge=0, le=2**53, description="Goes on after this event.")]
EventIdQuery = Annotated[int, Query(ge=0, le=2**53, description="As the header, for clients that set none.")]


@router.get(
    "/v1/jobs/{job_id}/events",
    operation_id="jobEvents",
    response_class=StreamingResponse,
    responses={
        **error_responses(410),
        200: {
            "description": "Events, as they come. The stream ends with the job.",
            "content": {"text/event-stream": {"schema": _EVENT}},
        },
        204: {"description": "The job has ended, and nothing has happened since `Last-Event-ID`."},
    },
)
async def job_events(
    job_id: JobId,
    services: ServicesDependency,
    caller: CallerDependency,
    header: EventId = 0,
    last_event_id: EventIdQuery = 0,
) -> Response:
    """Follows a job as server-sent events, from its beginning or from where an earlier stream broke off."""
    job = await services.jobs.get(job_id, caller.scope)
    after = header or last_event_id
    if job.status.ended and not await services.jobs.events(job_id, after, 1):
        # Browsers connect again and again unless they are told to stop, by this status.
        return Response(status_code=204)
    if services.streams.count >= services.options.limits.streams:
        raise QueueFullError(
            "Too many event streams are open.",
            f"Ask for /v1/jobs/{job_id} now and then.",
            retry_after=_FULL_RETRY_S,
            queued=services.streams.count,
        )
    return StreamingResponse(_stream(services, job_id, after), media_type="text/event-stream")


async def _stream(services: Services, job_id: str, after: int) -> AsyncIterator[str]:
    with services.streams.one():
        yield f"retry: {_RECONNECT_MS}\n\n"
        said = time.monotonic()
        kind = ""
        while True:
            try:
                found = await services.jobs.events(job_id, after, _MOST)
                for event in found:
                    yield _event(event)
                    after, kind, said = event.id, event.kind, time.monotonic()
                if len(found) == _MOST:
                    continue
                # A retry makes a job that has ended go on.
                if kind in _ENDS and (await services.jobs.get(job_id)).status.ended:
                    return
                if time.monotonic() - said >= _HEARTBEAT_S:
                    await services.jobs.get(job_id)
                    yield ": still here\n\n"
                    said = time.monotonic()
            except PagemillError:
                # The client connects again and is told what is wrong.
                return
            if await services.lifecycle.stopped(_LOOK_S):
                return


def _event(event: JobEvent) -> str:
    at = moment(event.at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    told = dict(event.data)
    if "index" in told:
        # People and the rest of this API count pages from 1.
        told["page"] = told.pop("index") + 1
    data = json.dumps({"at": at, **told}, ensure_ascii=False)
    return f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n"
