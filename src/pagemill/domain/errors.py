"""The tree of errors.

    PagemillError
    ├── InputError
    │   ├── SourceNotFoundError
    │   ├── UnsupportedFormatError
    │   ├── EncryptedDocumentError
    │   ├── CorruptDocumentError
    │   ├── LimitExceededError
    │   └── RenderError             (retryable)
    ├── EngineError
    │   ├── EngineUnavailableError  (retryable)
    │   ├── EngineOverloadedError   (retryable, retry_after)
    │   ├── EngineTimeoutError      (retryable)
    │   ├── RequestRejectedError
    │   ├── PageQuarantinedError
    │   ├── NotSupportedError
    │   └── DegenerateOutputError   (retryable)
    ├── OutputError
    ├── ConfigurationError
    │   └── MissingDependencyError
    ├── JobError
    │   ├── JobNotFoundError
    │   ├── JobGoneError
    │   ├── JobConflictError
    │   ├── LeaseLostError
    │   ├── QueueFullError          (retryable, retry_after)
    │   ├── RateLimitedError        (retryable, retry_after)
    │   └── StoppingError           (retryable, retry_after)
    ├── RequestError
    │   ├── BodyTooLargeError
    │   ├── BodyTooSlowError
    │   ├── AuthenticationError
    │   ├── PermissionDeniedError
    │   ├── ForbiddenUrlError
    │   └── FetchError
    └── StoreUnavailableError       (retryable)

Every error has a stable `code`, says whether it is `retryable`, and its message says what happened, where, and
what to do. Exceptions end documents; a failed page is data (`PageResult.error`).
"""

from __future__ import annotations

from typing import ClassVar


class PagemillError(Exception):
    """Base of all errors that pagemill raises on purpose.

    Args:
        message: What happened and where.
        remedy: What the reader can do about it; joined to the message.
    """

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, remedy: str = "") -> None:
        self.remedy = remedy
        super().__init__(f"{message} {remedy}".strip())


class InputError(PagemillError):
    """A document cannot be read as it is."""

    code = "input_error"


class SourceNotFoundError(InputError):
    """An input path does not exist or cannot be read."""

    code = "source_not_found"


class UnsupportedFormatError(InputError):
    """The content is no PDF and no image that can be read."""

    code = "unsupported_format"


class EncryptedDocumentError(InputError):
    """The PDF wants a password, or another one."""

    code = "encrypted_document"


class CorruptDocumentError(InputError):
    """The file or a page of it is damaged beyond repair."""

    code = "corrupt_document"


class LimitExceededError(InputError):
    """The document goes over a limit on pages, pixels, memory or time."""

    code = "limit_exceeded"


class RenderError(InputError):
    """A render process crashed or hung on a page."""

    code = "render_failed"
    retryable = True


class EngineError(PagemillError):
    """An engine could not recognise a page."""

    code = "engine_error"


class EngineUnavailableError(EngineError):
    """The engine cannot be reached or has died.

    Args:
        message: What happened.
        remedy: What to do.
        while_reading: Whether it had the page when it failed, and may have died of it.
    """

    code = "engine_unavailable"
    retryable = True

    def __init__(self, message: str, remedy: str = "", *, while_reading: bool = False) -> None:
        super().__init__(message, remedy)
        self.while_reading = while_reading


class EngineOverloadedError(EngineError):
    """The engine takes no more work at the moment.

    Args:
        message: What happened.
        remedy: What to do.
        retry_after: Seconds to wait, where the engine said so.
    """

    code = "engine_overloaded"
    retryable = True

    def __init__(self, message: str, remedy: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, remedy)
        self.retry_after = retry_after


class EngineTimeoutError(EngineError):
    """The engine did not answer in time."""

    code = "engine_timeout"
    retryable = True


class RequestRejectedError(EngineError):
    """The engine refused the page as it is.

    Args:
        message: What happened.
        remedy: What to do.
        any_page: Whether it would refuse every page: a wrong key, model or path.
    """

    code = "request_rejected"

    def __init__(self, message: str, remedy: str = "", *, any_page: bool = False) -> None:
        super().__init__(message, remedy)
        self.any_page = any_page


class PageQuarantinedError(EngineError):
    """The server died twice while it read the page; it is not sent again."""

    code = "page_quarantined"


class NotSupportedError(EngineError):
    """The engine of the service has nothing of the kind that was asked for."""

    code = "not_supported"


class DegenerateOutputError(EngineError):
    """The engine's output loops, is cut or is empty."""

    code = "degenerate_output"
    retryable = True


class OutputError(PagemillError):
    """A result cannot be written: disk full, no permission, or a file in the way."""

    code = "output_error"


class ConfigurationError(PagemillError):
    """Settings or arguments contradict each other or the machine."""

    code = "configuration_error"


class MissingDependencyError(ConfigurationError):
    """An optional package is not installed."""

    code = "missing_dependency"


class JobError(PagemillError):
    """Something about a job of the service."""

    code = "job_error"


class JobNotFoundError(JobError):
    """There is no such job, or it is somebody else's."""

    code = "job_not_found"


class JobGoneError(JobError):
    """The job has ended long ago and its result was deleted."""

    code = "job_gone"


class JobConflictError(JobError):
    """What was asked for does not go with the state of the job, or with an earlier use of the idempotency key."""

    code = "job_conflict"


class LeaseLostError(JobError):
    """Another worker has taken the work over; what was done is thrown away."""

    code = "lease_lost"


class QueueFullError(JobError):
    """The queue takes no more at the moment.

    Args:
        message: What happened.
        remedy: What to do.
        retry_after: Seconds after which to try again.
        queued: How many jobs wait.
    """

    code = "queue_full"
    retryable = True

    def __init__(self, message: str, remedy: str = "", *, retry_after: float = 1.0, queued: int = 0) -> None:
        super().__init__(message, remedy)
        self.retry_after = retry_after
        self.queued = queued


class RateLimitedError(JobError):
    """Too many requests in too short a time.

    Args:
        message: What happened.
        remedy: What to do.
        retry_after: Seconds after which to try again.
    """

    code = "rate_limited"
    retryable = True

    def __init__(self, message: str, remedy: str = "", *, retry_after: float = 1.0) -> None:
        super().__init__(message, remedy)
        self.retry_after = retry_after


class StoppingError(JobError):
    """The process ends and takes nothing new; another one does, or will.

    Args:
        message: What happened.
        remedy: What to do.
        retry_after: Seconds after which to try again.
    """

    code = "stopping"
    retryable = True

    def __init__(self, message: str, remedy: str = "", *, retry_after: float = 5.0) -> None:
        super().__init__(message, remedy)
        self.retry_after = retry_after


class RequestError(PagemillError):
    """A request to the service is not as it must be.

    Args:
        message: What is wrong.
        remedy: What to do.
        param: Name of the parameter that is wrong, with dots into nested ones.
    """

    code = "invalid_request"

    def __init__(self, message: str, remedy: str = "", *, param: str | None = None) -> None:
        super().__init__(message, remedy)
        self.param = param


class BodyTooLargeError(RequestError):
    """The body of a request is over the limit."""

    code = "body_too_large"


class BodyTooSlowError(RequestError):
    """The body of a request did not arrive in time."""

    code = "body_too_slow"


class AuthenticationError(RequestError):
    """A request has no valid key."""

    code = "invalid_api_key"


class PermissionDeniedError(RequestError):
    """The key does not allow what was asked for."""

    code = "permission_denied"


class ForbiddenUrlError(RequestError):
    """A URL leads to where the service does not go."""

    code = "forbidden_url"


class FetchError(RequestError):
    """A document could not be fetched from its URL."""

    code = "fetch_failed"


class StoreUnavailableError(PagemillError):
    """The database or the blob store does not answer."""

    code = "store_unavailable"
    retryable = True
