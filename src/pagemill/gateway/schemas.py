"""The JSON of the API: what comes in, and what goes out."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from pagemill.domain import ConversionStatus, Job, JobStatus, Priority
from pagemill.jobs.options import DocumentOptions

_STRICT = ConfigDict(extra="forbid", frozen=True)

MAX_PASSWORDS = 10
Password = Annotated[str, StringConstraints(max_length=1000)]
Webhook = Annotated[str, StringConstraints(min_length=1, max_length=8192)]


class UrlDocument(BaseModel):
    """A document named by a URL."""

    model_config = _STRICT

    type: Literal["document_url"]
    document_url: str = Field(
        description="A data: URL; http and https URLs only where the service allows them.",
        examples=["data:application/pdf;base64,JVBERi0xLjcK"],
    )
    name: str | None = Field(None, description="Its name, for people.", examples=["report.pdf"])


class FileDocument(BaseModel):
    """A document within the request."""

    model_config = _STRICT

    type: Literal["file"]
    name: str = Field(description="Its name, for people.", examples=["report.pdf"])
    data_base64: str = Field(
        description="Its bytes in base64, with padding and without line breaks.",
        examples=["JVBERi0xLjcK"],
    )


class Wishes(BaseModel):
    """What is wanted of documents."""

    model_config = _STRICT

    options: DocumentOptions = DocumentOptions()
    priority: Priority = Field(Priority.INTERACTIVE, description="`batch` lets all interactive work go first.")
    webhook: Webhook | None = Field(None, description="URL that is told of the job's end.")
    passwords: tuple[Password, ...] = Field(
        (), max_length=MAX_PASSWORDS, description="Tried in turn on an encrypted PDF; never shown again."
    )


class DocumentRequest(Wishes):
    """A document to convert."""

    document: UrlDocument | FileDocument = Field(discriminator="type")


class JobPages(BaseModel):
    """Pages of a job."""

    total: int | None = Field(description="Pages that are converted; nothing until the document was opened.")
    done: int = Field(description="Pages read well.")
    failed: int = Field(description="Pages that failed for good.")


class JobUsage(BaseModel):
    """Tokens, where the engine counts them."""

    prompt_tokens: int
    completion_tokens: int


class JobError(BaseModel):
    """Why a job failed as a whole."""

    code: str
    message: str
    retryable: bool


class JobLinks(BaseModel):
    """Where more is, relative to the service."""

    self: str
    events: str
    result: str


class JobOut(BaseModel):
    """A job."""

    id: str = Field(examples=["job_0199d1c2a3b4c5d6e7f8091a2b3c4d5e"])
    object: Literal["job"] = "job"
    status: JobStatus
    outcome: ConversionStatus | None = Field(description="How the document ended; nothing while it has not.")
    name: str = Field(description="The document's name.", examples=["report.pdf"])
    format: str = Field(description="As found in its bytes; empty until it was opened.", examples=["pdf"])
    size: int = Field(description="Its bytes.")
    sha256: str = Field(description="Hash of its bytes, in hex.")
    options: dict[str, Any]
    priority: Priority
    batch_id: str | None
    attempt: int = Field(description="1, and one more for each retry of failed pages.")
    pages: JobPages
    pages_per_s: float | None = Field(description="Pages a second since the job was started.")
    eta_s: float | None = Field(description="Seconds until its end at this speed.")
    queue_position: int | None = Field(None, description="How many jobs will be begun before it; only while it waits.")
    usage: JobUsage
    error: JobError | None
    webhook: bool = Field(description="Whether a URL is told of its end.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None = Field(description="When the result is deleted.")
    links: JobLinks


class JobList(BaseModel):
    """Jobs, the newest first."""

    object: Literal["list"] = "list"
    data: list[JobOut]
    next_cursor: str | None = Field(description="Give it as `cursor` to go on; nothing at the end.")


class BatchOut(BaseModel):
    """Jobs that were submitted together."""

    id: str = Field(examples=["batch_5e6f708192a3b4c5d6e7f809"])
    object: Literal["batch"] = "batch"
    ended: bool = Field(description="Whether all jobs have ended.")
    statuses: dict[JobStatus, int] = Field(description="Number of jobs by status.")
    pages: JobPages = Field(description="Sums; the total is nothing until all documents were opened.")
    jobs: list[JobOut]


def describe_job(job: Job, *, place: int | None = None, now: float | None = None) -> JobOut:
    """What clients see of a job: neither its owner nor its passwords nor where its bytes are.

    Args:
        job: The job.
        place: Jobs before it in the queue.
        now: Seconds since the epoch.
    """
    speed = _pages_per_s(job, time.time() if now is None else now)
    left = None if job.pages_total is None else job.pages_total - job.pages_done - job.pages_failed
    going = job.status is JobStatus.RUNNING
    error = job.error
    return JobOut(
        id=job.id,
        status=job.status,
        outcome=job.outcome,
        name=job.name,
        format=job.format,
        size=job.size,
        sha256=job.sha256,
        options=dict(job.options),
        priority=job.priority,
        batch_id=job.batch_id,
        attempt=job.attempt,
        pages=JobPages(total=job.pages_total, done=job.pages_done, failed=job.pages_failed),
        pages_per_s=None if speed is None else round(speed, 3),
        eta_s=round(left / speed, 1) if going and speed and left is not None else None,
        queue_position=place,
        usage=JobUsage(prompt_tokens=job.usage.prompt_tokens, completion_tokens=job.usage.completion_tokens),
        error=None if error is None else JobError(code=error.code, message=error.message, retryable=error.retryable),
        webhook=job.webhook is not None,
        created_at=moment(job.created_at),
        started_at=None if job.started_at is None else moment(job.started_at),
        finished_at=None if job.finished_at is None else moment(job.finished_at),
        expires_at=None if job.expires_at is None else moment(job.expires_at),
        links=JobLinks(
            self=f"/v1/jobs/{job.id}", events=f"/v1/jobs/{job.id}/events", result=f"/v1/jobs/{job.id}/result"
        ),
    )


def describe_batch(batch_id: str, jobs: list[Job]) -> BatchOut:
    """What clients see of a batch."""
    statuses = {status: sum(job.status is status for job in jobs) for status in JobStatus}
    totals = [job.pages_total for job in jobs]
    opened = [total for total in totals if total is not None]
    return BatchOut(
        id=batch_id,
        ended=all(job.status.ended for job in jobs),
        statuses={status: count for status, count in statuses.items() if count},
        pages=JobPages(
            total=sum(opened) if len(opened) == len(totals) else None,
            done=sum(job.pages_done for job in jobs),
            failed=sum(job.pages_failed for job in jobs),
        ),
        jobs=[describe_job(job) for job in jobs],
    )


def moment(seconds: float) -> datetime:
    """A time of the store, to the millisecond."""
    return datetime.fromtimestamp(round(seconds, 3), timezone.utc)


def _pages_per_s(job: Job, now: float) -> float | None:
    pages = job.pages_done + job.pages_failed
    if job.started_at is None or not pages:
        return None
    return pages / max(0.001, (job.finished_at or now) - job.started_at)
