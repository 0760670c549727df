"""Jobs: documents that were handed in, and what has become of them so far."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pagemill.domain.document import ConversionStatus
from pagemill.domain.page import Page
from pagemill.domain.result import PageError, Usage


class JobStatus(str, Enum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    """All pages were read, or at least one of them: see `Job.outcome`."""
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED)


class Priority(str, Enum):
    """Who goes first."""

    INTERACTIVE = "interactive"
    """Somebody waits for it."""
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be accepted.

    Attributes:
        id: From `new_job_id`; the document is in the blob store under it before the job is submitted.
        key_id: Whose it is.
        name: The document's name, for people; never a path.
        blob: Where the document is in the blob store.
        size: Bytes of the document.
        sha256: Hash of the document, in hex.
        options: How it is converted, as plain JSON values; the store does not look into them.
        priority: Who goes first.
        batch_id: Jobs that were submitted together share one.
        idempotency_key: Chosen by the client: the same key of the same owner gives the same job.
        fingerprint: Hash over all that was asked for; another one under a known idempotency key is a conflict.
        webhook: URL that is told of the end.
        secrets: Passwords for the document; deleted when the job has ended, never part of an answer.
        request_id: Of the request that brought it; for logs.
        trace: Where the trace of that request goes on (W3C `traceparent`); empty for none.
        deadline: Time by which it must have ended, in seconds since the epoch; None for no bound.
    """

    id: str
    key_id: str
    name: str
    blob: str
    size: int
    sha256: str
    options: Mapping[str, Any] = field(default_factory=dict)
    priority: Priority = Priority.INTERACTIVE
    batch_id: str | None = None
    idempotency_key: str | None = None
    fingerprint: str = ""
    webhook: str | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    request_id: str = ""
    trace: str = ""
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the store knows it. Times are seconds since the epoch.

    Attributes:
        pages_total: Pages that are converted; None until the document was opened.
        pages_done: Pages read well.
        pages_failed: Pages that failed for good.
        format: `pdf`, `png`, ...; empty until the document was opened.
        error: Why the job failed as a whole; None where it did not.
        expires_at: When its result is deleted; None until it has ended.
        attempt: 1, and one more for each retry of its failed pages.
    """

    id: str
    key_id: str
    name: str
    blob: str
    size: int
    sha256: str
    options: Mapping[str, Any]
    priority: Priority
    status: JobStatus
    created_at: float
    batch_id: str | None = None
    format: str = ""
    pages_total: int | None = None
    pages_done: int = 0
    pages_failed: int = 0
    usage: Usage = Usage()
    started_at: float | None = None
    finished_at: float | None = None
    expires_at: float | None = None
    error: PageError | None = None
    webhook: str | None = None
    request_id: str = ""
    trace: str = ""
    deadline: float | None = None
    attempt: int = 1

    @property
    def outcome(self) -> ConversionStatus | None:
        """How the document ended; None while it has not."""
        if not self.status.ended:
            return None
        if self.pages_total is not None and self.pages_done == self.pages_total and self.error is None:
            return ConversionStatus.SUCCESS
        return ConversionStatus.PARTIAL_SUCCESS if self.pages_done else ConversionStatus.FAILURE


class TaskKind(str, Enum):
    """Kinds of work."""

    OPEN = "open"
    """Look into the document and say which pages it has."""
    PAGES = "pages"
    """Read some of its pages."""


@dataclass(frozen=True, slots=True)
class Task:
    """A piece of work that one worker holds for a while.

    Attributes:
        id: Which piece.
        token: Which holding of it: work that is handed in under an earlier token is refused.
        kind: What to do.
        job: For which job.
        pages: Pages to read that have no result yet; empty for `OPEN`.
        takeovers: How many holders have vanished with it before.
        secrets: Passwords for the document.
    """

    id: int
    token: str
    kind: TaskKind
    job: Job
    pages: tuple[Page, ...] = ()
    takeovers: int = 0
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class StoredPage:
    """The result of a page, as the store keeps it.

    Attributes:
        index: Position in the document, from 0.
        ok: Whether the page is complete.
        data: The result in full, encoded; the store does not look into it. Empty for a page that it failed itself.
        error: Why it failed.
        usage: Tokens.
        figures: Blobs of the pictures that it links to.
    """

    index: int
    ok: bool
    data: bytes
    error: PageError | None = None
    usage: Usage = Usage()
    figures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened to a job.

    Attributes:
        id: Grows within a job, without gaps that matter: ask for what comes after the last one seen.
        kind: `queued`, `started`, `opened`, `page`, `succeeded`, `failed`, `cancelled`, `retried`.
        at: Seconds since the epoch.
        data: More, as plain JSON values (for `page`: index, ok, error code).
    """

    id: int
    kind: str
    at: float
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The queue as it is now, over all processes.

    Attributes:
        queued: Jobs that nobody has begun, by priority.
        running: Jobs under way, by priority.
        tasks_queued: Pieces of work that nobody holds, by priority.
        tasks_leased: Pieces of work that are held, by priority.
        oldest_s: Age in seconds of the oldest job that nobody has begun, by priority; 0 where there is none.
        finished_last_minute: Jobs that ended in the last 60 s.
    """

    queued: Mapping[Priority, int]
    running: Mapping[Priority, int]
    tasks_queued: Mapping[Priority, int]
    tasks_leased: Mapping[Priority, int]
    oldest_s: Mapping[Priority, float]
    finished_last_minute: int = 0


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key of the service; the key itself is known to its owner alone.

    Attributes:
        id: Stable name of it in logs, metrics and jobs.
        name: For people.
        admin: Whether it sees the jobs of all.
        created_at: Seconds since the epoch.
        revoked_at: When it was withdrawn; None while it is valid.
        last_used_at: When it was last used, to within some minutes; None for never.
    """

    id: str
    name: str
    admin: bool
    created_at: float
    revoked_at: float | None = None
    last_used_at: float | None = None


def new_job_id(clock: float | None = None) -> str:
    """An id that sorts by time of making and cannot be guessed: `job_` and 32 hex digits.

    Args:
        clock: Seconds since the epoch; now by default.
    """
    milliseconds = int((time.time() if clock is None else clock) * 1000)
    return f"job_{milliseconds:012x}{secrets.token_hex(10)}"
