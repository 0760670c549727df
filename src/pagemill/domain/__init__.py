"""What the product talks about: documents, pages, results, errors. Plain data, no I/O.

Data flows one way: source document -> pages -> page images -> engine -> page results -> document -> output.
"""

from pagemill.domain.document import ConversionResult, ConversionStatus, DocumentInfo, DocumentSource
from pagemill.domain.geometry import BoundingBox
from pagemill.domain.job import (
    ApiKey,
    Job,
    JobEvent,
    JobStatus,
    NewJob,
    Priority,
    QueueStats,
    StoredPage,
    Task,
    TaskKind,
    new_job_id,
)
from pagemill.domain.page import Page, PageImage, TextLayer, TextSpan, TextVerdict
from pagemill.domain.result import (
    Block,
    BlockKind,
    Figure,
    FinishReason,
    PageError,
    PageFlag,
    PageResult,
    SamplingParams,
    TextLine,
    Usage,
)

__all__ = [
    "ApiKey",
    "Block",
    "BlockKind",
    "BoundingBox",
    "ConversionResult",
    "ConversionStatus",
    "DocumentInfo",
    "DocumentSource",
    "Figure",
    "FinishReason",
    "Job",
    "JobEvent",
    "JobStatus",
    "NewJob",
    "Page",
    "PageError",
    "PageFlag",
    "PageImage",
    "PageResult",
    "Priority",
    "QueueStats",
    "SamplingParams",
    "StoredPage",
    "Task",
    "TaskKind",
    "TextLayer",
    "TextLine",
    "TextSpan",
    "TextVerdict",
    "Usage",
    "new_job_id",
]
