"""Documents become jobs: first their bytes are safe, then the job, then the client hears of it."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from pagemill.domain import Job, NewJob, Priority, new_job_id
from pagemill.domain.errors import (
    ConfigurationError,
    JobConflictError,
    JobNotFoundError,
    PagemillError,
    QueueFullError,
    RequestError,
    StoreUnavailableError,
)
from pagemill.gateway.auth import Caller
from pagemill.gateway.errors import validation_problem
from pagemill.gateway.multipart import Form
from pagemill.gateway.runtime import Services
from pagemill.gateway.schemas import Wishes
from pagemill.gateway.uploads import Upload
from pagemill.gateway.webhooks import check_webhook_url
from pagemill.jobs.options import DocumentOptions, conversion_options
from pagemill.telemetry import current_context

_OWN_FIELDS = frozenset({"options", "priority", "webhook", "password"})
_ONE_OF_A_BATCH = "\x1f"
"""Between the client's key and the number of a document; no header can hold it."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a client wants done with its documents.

    Attributes:
        wishes: What it says about them.
        idempotency_key: Chosen by the client.
        request_id: Of the request.
    """

    wishes: Wishes
    idempotency_key: str | None
    request_id: str


def wishes_of_form(form: Form, priority: Priority) -> Wishes:
    """What a form says: options each in a field of its own, or as JSON in the field `options`.

    Args:
        form: The form.
        priority: Where the form names none.

    Raises:
        RequestError: A field is unknown, given twice, or has a wrong value.
    """
    passwords = tuple(value for name, value in form.fields if name == "password")
    single: dict[str, str] = {}
    for name, value in form.fields:
        if name in single:
            raise RequestError(f"The field {name!r} is given twice.", "Send it once.", param=name)
        if name not in _OWN_FIELDS and name not in DocumentOptions.model_fields:
            raise RequestError(
                f"The form has a field {name[:100]!r}, which means nothing here.",
                f"Known: file, {', '.join(sorted(_OWN_FIELDS))}, {', '.join(DocumentOptions.model_fields)}.",
                param=name[:100],
            )
        if name != "password":
            single[name] = value
    flat: dict[str, Any] = {name: value for name, value in single.items() if name not in _OWN_FIELDS}
    try:
        named = json.loads(single.get("options") or "{}")
    except (ValueError, RecursionError):
        named = None
    if not isinstance(named, dict) or named.keys() & flat.keys():
        raise RequestError(
            "The field 'options' is no JSON object, or names an option that has a field of its own.",
            'Send options=\'{"pages": "1-3"}\', or each option in a field of its own.',
            param="options",
        )
    values = {name: single[name] for name in ("priority", "webhook") if name in single}
    try:
        return Wishes.model_validate(
            {"priority": priority, "options": {**named, **flat}, "passwords": passwords, **values}
        )
    except ValidationError as error:
        raise validation_problem(error) from None


async def submit(
    services: Services, caller: Caller, uploads: Sequence[Upload], order: Order, *, batch: bool = False
) -> list[Job]:
    """Makes jobs of documents, all or none; when it returns, they survive the end of every process.

    Args:
        services: Stores and settings.
        caller: Whose the jobs are.
        uploads: The documents.
        order: What is wanted.
        batch: Whether they belong together.

    Raises:
        RequestError: An option makes no sense, or the webhook may not be called.
        QueueFullError, JobConflictError, StoreUnavailableError: As `JobStore.submit`.
    """
    _check(services, order.wishes)
    jobs = _new_jobs(services, caller, uploads, order, f"batch_{secrets.token_hex(12)}" if batch else None)
    kept: list[str] = []
    try:
        for job, upload in zip(jobs, uploads, strict=True):
            kept.append(job.blob)
            await services.blobs.put(job.blob, upload.path)
        accepted = await services.jobs.submit(jobs)
    except PagemillError as error:
        if await _surely_refused(services, jobs[0].id, error):
            await services.blobs.delete(kept)
        raise
    services.wake()
    return [job for job, _new in accepted]


async def _surely_refused(services: Services, job_id: str, error: PagemillError) -> bool:
    """Whether the jobs are certainly not in the store: a database that breaks off may have taken them."""
    if isinstance(error, QueueFullError | JobConflictError):
        return True
    try:
        await services.jobs.get(job_id)
    except JobNotFoundError:
        return True
    except StoreUnavailableError:
        return False
    return False


def _check(services: Services, wishes: Wishes) -> None:
    try:
        wishes.options.check()
        conversion_options(services.conversion, wishes.options.stored())
    except ConfigurationError as error:
        param = "options" if wishes.options.pages is None else "options.pages"
        raise RequestError(str(error).removesuffix(error.remedy).strip(), error.remedy, param=param) from None
    if wishes.webhook is not None:
        check_webhook_url(wishes.webhook, services.options.webhook)


def _new_jobs(
    services: Services, caller: Caller, uploads: Sequence[Upload], order: Order, batch_id: str | None
) -> list[NewJob]:
    wishes = order.wishes
    options = wishes.options.stored()
    wanted = {
        "documents": [upload.sha256 for upload in uploads],
        "options": options,
        "priority": wishes.priority.value,
        "webhook": wishes.webhook,
        "batch": batch_id is not None,
    }
    fingerprint = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()
    now = time.time()
    jobs = []
    for number, upload in enumerate(uploads):
        # Ids sort by time: a millisecond apart, those of a batch keep the order of its documents.
        job_id = new_job_id(now + number / 1000)
        key = order.idempotency_key
        if key is not None and batch_id is not None:
            key = f"{key}{_ONE_OF_A_BATCH}{number}"
        jobs.append(
            NewJob(
                id=job_id,
                key_id=caller.key_id,
                name=upload.name,
                blob=f"documents/{job_id}",
                size=upload.size,
                sha256=upload.sha256,
                options=options,
                priority=wishes.priority,
                batch_id=batch_id,
                idempotency_key=key,
                fingerprint=fingerprint,
                webhook=wishes.webhook,
                secrets=wishes.passwords,
                request_id=order.request_id,
                trace=current_context().traceparent,
                deadline=now + services.options.limits.job_s,
            )
        )
    return jobs
