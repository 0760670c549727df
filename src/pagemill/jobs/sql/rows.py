"""Rows of the tables as the product's own types, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pagemill.domain import Job, JobEvent, JobStatus, Page, PageError, Priority, StoredPage, Usage

_PRIORITIES = (Priority.INTERACTIVE, Priority.BATCH)
_PLAIN = (
    "id",
    "key_id",
    "name",
    "blob",
    "size",
    "sha256",
    "options",
    "created_at",
    "batch_id",
    "format",
    "pages_total",
    "pages_done",
    "pages_failed",
    "started_at",
    "finished_at",
    "expires_at",
    "webhook",
    "request_id",
    "trace",
    "deadline",
    "attempt",
)


def clean(text: str) -> str:
    """Text that every database takes: no NUL, no half of a pair of surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def priority_number(priority: Priority) -> int:
    """How a priority is kept; less goes first."""
    return _PRIORITIES.index(priority)


def to_priority(number: int) -> Priority:
    """The priority that is kept so."""
    return _PRIORITIES[number]


def error_json(error: PageError | None) -> dict[str, Any] | None:
    """An error as JSON values."""
    return None if error is None else asdict(error)


def to_error(data: Mapping[str, Any] | None) -> PageError | None:
    """The error of `error_json`."""
    return None if data is None else PageError(**data)


def job_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """What `to_job` needs of a row, as JSON values."""
    return {
        **{name: row[name] for name in _PLAIN},
        "status": row["status"],
        "priority": row["priority"],
        "prompt_tokens": row["prompt_tokens"],
        "completion_tokens": row["completion_tokens"],
        "error": row["error"],
    }


def to_job(row: Mapping[str, Any]) -> Job:
    """A job from its row, or from `job_json`."""
    return Job(
        **{name: row[name] for name in _PLAIN},
        status=JobStatus(row["status"]),
        priority=to_priority(row["priority"]),
        usage=Usage(row["prompt_tokens"], row["completion_tokens"]),
        error=to_error(row["error"]),
    )


def pages_json(pages: tuple[Page, ...] | list[Page]) -> list[list[float]]:
    """Pages as JSON values, briefly: a book has thousands."""
    return [[page.index, page.width_pt, page.height_pt, page.rotation] for page in pages]


def to_pages(data: list[Any]) -> tuple[Page, ...]:
    """The pages of `pages_json`."""
    return tuple(Page(int(index), width, height, int(rotation)) for index, width, height, rotation in data)


def to_stored_page(row: Mapping[str, Any]) -> StoredPage:
    """The result of a page from its row."""
    return StoredPage(
        index=row["idx"],
        ok=row["ok"],
        data=bytes(row["data"]),
        error=to_error(row["error"]),
        usage=Usage(row["prompt_tokens"], row["completion_tokens"]),
        figures=tuple(row["figures"]),
    )


def to_event(row: Mapping[str, Any]) -> JobEvent:
    """An event from its row."""
    return JobEvent(id=row["seq"], kind=row["kind"], at=row["at"], data=row["data"])
