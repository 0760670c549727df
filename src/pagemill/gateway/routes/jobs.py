"""Jobs: their state, their list, their end before its time, and another try."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query

from pagemill.domain import Job, JobStatus
from pagemill.domain.errors import JobNotFoundError
from pagemill.gateway.auth import Caller, CallerDependency
from pagemill.gateway.errors import error_responses
from pagemill.gateway.runtime import Services, ServicesDependency
from pagemill.gateway.schemas import BatchOut, JobList, JobOut, describe_batch, describe_job
from pagemill.jobs.store import JobFilter

router = APIRouter(tags=["jobs"])

JobId = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["job_0199d1c2a3b4c5d6e7f8091a2b3c4d5e"])]
BatchId = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["batch_5e6f708192a3b4c5d6e7f809"])]

_MOST = 500


@router.get("/v1/jobs", operation_id="listJobs", responses=error_responses())
async def list_jobs(
    services: ServicesDependency,
    caller: CallerDependency,
    status: Annotated[list[JobStatus] | None, Query(description="With one of these.")] = None,
    batch_id: Annotated[str | None, Query(max_length=64, description="Of this batch.")] = None,
    created_after: Annotated[datetime | None, Query(description="Made later than this.")] = None,
    created_before: Annotated[datetime | None, Query(description="Made earlier than this.")] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 50,
    cursor: Annotated[str | None, Query(max_length=500, description="`next_cursor` of the page before.")] = None,
) -> JobList:
    """Jobs of the caller, the newest first; of all callers for administrators."""
    wanted = JobFilter(
        key_id=caller.scope,
        statuses=tuple(status or ()),
        batch_id=batch_id,
        created_after=None if created_after is None else created_after.timestamp(),
        created_before=None if created_before is None else created_before.timestamp(),
    )
    found, after = await services.jobs.search(wanted, limit=limit, cursor=cursor)
    return JobList(data=[describe_job(job) for job in found], next_cursor=after)


@router.get("/v1/jobs/{job_id}", operation_id="getJob", responses=error_responses(410))
async def get_job(job_id: JobId, services: ServicesDependency, caller: CallerDependency) -> JobOut:
    """Where a job stands."""
    job = await services.jobs.get(job_id, caller.scope)
    return await _described(services, job)


@router.delete("/v1/jobs/{job_id}", operation_id="cancelJob", responses=error_responses(410))
async def cancel_job(job_id: JobId, services: ServicesDependency, caller: CallerDependency) -> JobOut:
    """Ends a job; pages that were read are kept. A job that has ended stays as it is."""
    return await _described(services, await services.jobs.cancel(job_id, caller.scope))


@router.post("/v1/jobs/{job_id}/retry", operation_id="retryJob", status_code=202, responses=error_responses(409, 410))
async def retry_job(job_id: JobId, services: ServicesDependency, caller: CallerDependency) -> JobOut:
    """Tries the pages again that have no good result; the good ones are kept."""
    job = await services.jobs.retry_failed(job_id, caller.scope)
    services.wake()
    return await _described(services, job)


@router.get("/v1/batches/{batch_id}", operation_id="getBatch", responses=error_responses())
async def get_batch(batch_id: BatchId, services: ServicesDependency, caller: CallerDependency) -> BatchOut:
    """Where the jobs of a batch stand."""
    return describe_batch(batch_id, await _batch(services, caller, batch_id))


@router.delete("/v1/batches/{batch_id}", operation_id="cancelBatch", responses=error_responses())
async def cancel_batch(batch_id: BatchId, services: ServicesDependency, caller: CallerDependency) -> BatchOut:
    """Ends all jobs of a batch that have not ended."""
    jobs = await _batch(services, caller, batch_id)
    ended = [job if job.status.ended else await services.jobs.cancel(job.id, caller.scope) for job in jobs]
    return describe_batch(batch_id, ended)


async def _described(services: Services, job: Job) -> JobOut:
    place = await services.jobs.place(job) if job.status is JobStatus.QUEUED else None
    return describe_job(job, place=place)


async def _batch(services: Services, caller: Caller, batch_id: str) -> list[Job]:
    wanted = JobFilter(key_id=caller.scope, batch_id=batch_id)
    jobs, _cursor = await services.jobs.search(wanted, limit=services.options.limits.files)
    if not jobs:
        raise JobNotFoundError(f"There is no batch {batch_id}.", "Check the id; results are kept for a while only.")
    return jobs[::-1]
