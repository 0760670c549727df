"""What keeps jobs, keys, rates and webhooks; one contract suite runs every implementation.

Whatever a method has returned is on disk: it survives the end of any process at any moment. Any process may call any
method about any job. Times are seconds since the epoch by the store's own clock, which all processes share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pagemill.domain import ApiKey, Job, JobEvent, JobStatus, NewJob, Page, PageError, QueueStats, StoredPage
from pagemill.domain.job import Task


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Bounds and times of the store.

    Attributes:
        lease_s: Seconds for which a worker holds work without a sign of life.
        chunk_pages: Pages of one piece of work.
        max_takeovers: Holders that may vanish with a piece of work before its pages fail.
        result_ttl_s: Seconds for which results are kept.
        tombstone_ttl_s: Seconds for which a deleted job still answers that it is gone.
        max_queued: Jobs that may wait, in all.
        max_queued_per_key: Jobs that may wait, of one key.
        batch_share: Of so many pieces of work one is taken from the batch queue, although interactive work waits.
    """

    lease_s: float = 15.0
    chunk_pages: int = 4
    max_takeovers: int = 10
    result_ttl_s: float = 7 * 86_400.0
    tombstone_ttl_s: float = 30 * 86_400.0
    max_queued: int = 50_000
    max_queued_per_key: int = 25_000
    batch_share: int = 8


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list.

    Attributes:
        key_id: Of this key alone; None for all.
        statuses: With one of these; empty for all.
        batch_id: Of this batch; None for all.
        created_after: Made later than this.
        created_before: Made earlier than this.
    """

    key_id: str | None = None
    statuses: tuple[JobStatus, ...] = ()
    batch_id: str | None = None
    created_after: float | None = None
    created_before: float | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a round of housekeeping found.

    Attributes:
        released: Pieces of work whose holders have vanished; others may take them now.
        overdue: Jobs that were ended because their time was up.
        expired: Jobs whose results were deleted.
        blobs: Blobs that nothing refers to any more; the caller deletes them, and then calls `forget_blobs`.
    """

    released: int = 0
    overdue: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
    blobs: tuple[str, ...] = ()


class JobStore(Protocol):
    """Keeps jobs and hands out their work.

    Fairness: keys share the work evenly, by pages; within a key, documents take turns, one piece of work each in the
    order of their arrival, so that a book never blocks a receipt and receipts never starve a book; interactive work
    comes before batch work, which still gets one turn in `StoreOptions.batch_share`.
    """

    async def submit(self, jobs: Sequence[NewJob]) -> list[tuple[Job, bool]]:
        """Accepts jobs, all or none.

        Returns:
            For each the job, and False where it is an earlier one with the same idempotency key.

        Raises:
            QueueFullError: Too many jobs wait.
            JobConflictError: An idempotency key was used for something else.
        """
        ...

    async def get(self, job_id: str, key_id: str | None = None) -> Job:
        """A job.

        Args:
            job_id: Its id.
            key_id: Whose it must be; None for anybody's.

        Raises:
            JobNotFoundError: There is none, or it is somebody else's.
            JobGoneError: Its result was deleted.
        """
        ...

    async def search(self, wanted: JobFilter, *, limit: int, cursor: str | None = None) -> tuple[list[Job], str | None]:
        """Jobs, the newest first, and the cursor of the next page of the list; None at its end.

        Raises:
            RequestError: The cursor is none of ours.
        """
        ...

    async def cancel(self, job_id: str, key_id: str | None = None) -> Job:
        """Ends a job: nobody takes work of it any more, and who holds some learns it at the next heartbeat.

        A job that has ended stays as it is.

        Raises:
            JobNotFoundError, JobGoneError: As `get`.
        """
        ...

    async def retry_failed(self, job_id: str, key_id: str | None = None) -> Job:
        """Queues the pages of an ended job that have no good result; a document that could not be opened as well.

        Raises:
            JobNotFoundError, JobGoneError: As `get`.
            JobConflictError: It has not ended, or nothing of it failed.
            QueueFullError: Too many jobs wait.
        """
        ...

    async def events(self, job_id: str, after: int = 0, limit: int = 500) -> list[JobEvent]:
        """Events of a job with an id above `after`, in order."""
        ...

    async def pages(self, job_id: str, *, first: int = 0, limit: int = 100) -> list[StoredPage]:
        """Results of pages from index `first` on, in page order; those that are not there yet are left out."""
        ...

    async def place(self, job: Job) -> int | None:
        """How many jobs will be begun before this one, as far as can be told; None once it was begun.

        Cheap enough to be asked for with every poll: it may be some seconds old.
        """
        ...

    async def stats(self) -> QueueStats:
        """The queue as it is now."""
        ...

    async def lease(self, owner: str, pages: int) -> list[Task]:
        """Takes work for about so many pages (at least one piece, where there is any), in the order that is fair.

        The first piece of a job starts it. Pages that have a result already are left out of a task.

        Args:
            owner: Id of the worker, new for each start of its process.
            pages: How many pages it has room for; the work to open a document counts as one.
        """
        ...

    async def heartbeat(self, owner: str, tokens: Sequence[str]) -> set[str]:
        """Prolongs leases.

        Returns:
            Those that are lost: taken over by others, or of jobs that were cancelled or ended.
        """
        ...

    async def opened(self, task: Task, document_format: str, pages: Sequence[Page]) -> None:
        """Ends an `OPEN` task: the document has these pages, which become work.

        Raises:
            LeaseLostError: The task is no longer held under this token.
        """
        ...

    async def open_failed(self, task: Task, error: PageError) -> None:
        """Ends an `OPEN` task, and with it the job.

        Raises:
            LeaseLostError: As `opened`.
        """
        ...

    async def finish_page(self, task: Task, page: StoredPage) -> None:
        """Keeps the result of a page; with the last page of a task the task ends, with the last of a job the job.

        A good result is never replaced.

        Raises:
            LeaseLostError: As `opened`.
        """
        ...

    async def hand_back(self, owner: str, tokens: Sequence[str]) -> None:
        """Gives up leases, so that others need not wait for them to run out; does not count as a takeover."""
        ...

    async def sweep(self) -> Sweep:
        """Housekeeping, called by every process every few seconds: leases that ran out, jobs overdue or expired.

        A task that too many holders have vanished with fails its pages (`page_quarantined`), and a document that
        could not be opened that often its job. Blobs are returned again and again until `forget_blobs` was called.
        """
        ...

    async def forget_blobs(self, names: Sequence[str]) -> None:
        """Blobs that `sweep` returned have been deleted."""
        ...


class KeyStore(Protocol):
    """Keeps API keys, hashed."""

    async def create(self, name: str, *, admin: bool = False) -> tuple[ApiKey, str]:
        """Makes a key; the second value is the key itself, which is told only here.

        Raises:
            JobConflictError: A valid key has that name.
        """
        ...

    async def find(self, key: str) -> ApiKey | None:
        """The valid key that this is; None where it is none."""
        ...

    async def all_keys(self) -> list[ApiKey]:
        """All keys, withdrawn ones too, in order of making."""
        ...

    async def revoke(self, name_or_id: str) -> ApiKey:
        """Withdraws a key at once.

        Raises:
            JobNotFoundError: There is no such valid key.
        """
        ...


class RateStore(Protocol):
    """Token buckets that all processes share."""

    async def take(self, bucket: str, *, rate: float, burst: float, patience: float = 0.0) -> float:
        """Takes one token, also one that is still to come.

        Args:
            bucket: Its name.
            rate: Tokens a second that flow in.
            burst: Tokens that it holds.
            patience: Seconds for which the caller would wait.

        Returns:
            Seconds until the token is there: 0 where it is. Where they are more than `patience`, nothing was taken.
        """
        ...


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook to be sent.

    Attributes:
        id: The same for each try: receivers may drop what they know.
        job: The job, as it ended.
        url: Where to.
        attempt: Which try, from 1.
    """

    id: str
    job: Job
    url: str
    attempt: int


class WebhookStore(Protocol):
    """Webhooks that are still to be sent; one is made in the same step in which a job with a URL ends."""

    async def due(self, owner: str, limit: int = 20) -> list[Delivery]:
        """Takes deliveries whose time has come, for a minute; each goes to one process alone."""
        ...

    async def delivered(self, delivery: Delivery) -> None:
        """It was received."""
        ...

    async def failed(self, delivery: Delivery, error: str, *, retry_in_s: float | None) -> None:
        """It was not received; tried again after `retry_in_s` seconds, or never."""
        ...


__all__ = [
    "Delivery",
    "JobFilter",
    "JobStore",
    "KeyStore",
    "RateStore",
    "StoreOptions",
    "Sweep",
    "WebhookStore",
]
