"""From the lines that vLLM writes to records, and from those to the error that matters; pure.

vLLM's lines look like `(EngineCore pid=331) ERROR 12-01 04:21:32 [core.py:133] message`. Its parts write at once, each
line of a traceback stands alone, and what libraries print has any form.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from pagemill.serving.errors import ErrorClass, ServerError, classify, is_consequence, is_noise

_PREFIX = re.compile(r"\((?P<process>[\w-]+) pid=(?P<pid>\d+)\) ?")
_HEADER = re.compile(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>\d\d-\d\d \d\d:\d\d:\d\d) \[(?P<source>[^\]]+)\] ?"
)
# As glog, c10 and NCCL write: `E1201 04:21:20.589000 32626 file.py:53] message`, also with [rank0]: and brackets.
_GLOG = re.compile(
    r"(?:\[rank\d+\]:)?\[?(?P<level>[IWEF])(?P<date>\d{4}) (?P<clock>\d\d:\d\d:\d\d)\.\d+ (?:\d+ )?"
    r"(?P<source>[\w./-]+:\d+)\] ?"
)
_GLOG_LEVELS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
_TRACEBACK = "Traceback (most recent call last):"
_FATAL = "Fatal Python error: "
_USAGE_ERROR = re.compile(r"vllm(?: \w+)?: error: ")
_EXCEPTION = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?:: .*|:|$)")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_ERRORS = ("ERROR", "CRITICAL")
_AFTER_EXCEPTION = 12
_MOST_LINES = 400
_MOST_LINE = 4000
_SHOWN = 400


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record of the log.

    Attributes:
        process: vLLM's name of the process, where it says so: APIServer, EngineCore, Worker.
        pid: Its id.
        level: DEBUG, INFO, WARNING, ERROR, CRITICAL; empty for text without a level.
        time: As vLLM writes it, MM-DD hh:mm:ss, local time.
        source: File and line.
        message: All lines.
        line: Number of its first line in the log.
    """

    process: str = ""
    pid: int | None = None
    level: str = ""
    time: str = ""
    source: str = ""
    message: str = ""
    line: int = 0

    @property
    def is_error(self) -> bool:
        """Whether it tells of an error."""
        return self.level in _ERRORS

    def as_json(self) -> dict[str, Any]:
        """What stands in the JSON lines, with the class of an error."""
        error = classify(self.message) if self.is_error else None
        data: dict[str, Any] = {
            "process": self.process,
            "pid": self.pid,
            "level": self.level.lower(),
            "time": self.time,
            "source": self.source,
            "message": self.message,
        }
        if self.is_error:
            data["error_class"] = (error.kind if error else ErrorClass.OTHER).value
        return {name: value for name, value in data.items() if value not in ("", None)}


@dataclass
class _Open:
    header: tuple[str, ...]
    record: LogRecord
    lines: list[str]
    raw: bool = False
    lines_after_exception: int | None = None

    def close(self) -> LogRecord:
        return replace(self.record, message="\n".join(self.lines).strip("\n"))


class LogParser:
    """Joins lines to records: the lines of an error, and tracebacks that stand in the log without any header."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _Open] = {}
        self._line = 0

    def feed(self, line: str) -> list[LogRecord]:
        """Takes a line without its end; gives the records that are complete."""
        self._line += 1
        text = _ANSI.sub("", line)[:_MOST_LINE].rstrip()
        prefix = _PREFIX.match(text)
        process, pid = (prefix["process"], prefix["pid"]) if prefix else ("", "")
        rest = text[prefix.end() :] if prefix else text
        head, message = _head(rest)
        level, time, source = head
        lane = self._open.get((process, pid))
        done: list[LogRecord] = []
        if lane is not None:
            if _belongs(lane, head, rest):
                lane.lines.append(message)
                return []
            done.append(self._open.pop((process, pid)).close())
        if not text:
            return done
        raw = not level and (rest.startswith((_TRACEBACK, _FATAL)) or _USAGE_ERROR.match(rest) is not None)
        record = LogRecord(
            process, int(pid) if pid else None, "ERROR" if raw else level, time, source, message, self._line
        )
        if record.is_error:
            self._open[process, pid] = _Open(head, record, [message], raw=raw)
            return done
        return [*done, record]

    def flush(self) -> list[LogRecord]:
        """Gives what is still open: at the end, and when the log has been quiet."""
        done = [lane.close() for lane in self._open.values()]
        self._open.clear()
        return done


def _head(text: str) -> tuple[tuple[str, str, str], str]:
    if match := _HEADER.match(text):
        return (match["level"], match["time"], match["source"]), text[match.end() :]
    if match := _GLOG.match(text):
        time = f"{match['date'][:2]}-{match['date'][2:]} {match['clock']}"
        return (_GLOG_LEVELS[match["level"]], time, match["source"]), text[match.end() :]
    return ("", "", ""), text


def _belongs(lane: _Open, head: tuple[str, str, str], text: str) -> bool:
    """Whether a line continues the open record of its process."""
    if len(lane.lines) >= _MOST_LINES:
        return False
    if not lane.raw:
        # The clock may tick within one traceback.
        return bool(head[0]) and (head[0], head[2]) == (lane.header[0], lane.header[2])
    if head[0]:
        return False
    if lane.lines_after_exception is None:
        if text and not text[0].isspace() and not text.startswith(_TRACEBACK):
            lane.lines_after_exception = 0
        return True
    if text.startswith(_TRACEBACK):
        lane.lines_after_exception = None
        return True
    lane.lines_after_exception += 1
    return lane.lines_after_exception <= _AFTER_EXCEPTION


def describe(record: LogRecord) -> str:
    """An error in one line: its exception with what it says, else its first line."""
    lines = [line for line in record.message.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if _EXCEPTION.match(line):
            # pydantic says on the next line what is wrong, and so do messages that begin with a line feed.
            says_it_later = "validation error" in line or line.rstrip().endswith(":")
            more = lines[number + 1].strip() if says_it_later and number + 1 < len(lines) else ""
            return f"{line} {more}".strip()[:_SHOWN]
    return (lines[0] if lines else "")[:_SHOWN]


@dataclass
class ErrorLog:
    """Remembers what matters of one run of a server: its first error, which the later ones follow from.

    Attributes:
        counts: Errors by class.
        tail: The last lines, for when there is no error.
    """

    counts: Counter[ErrorClass] = field(default_factory=Counter)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    _errors: list[tuple[int, int, ServerError]] = field(default_factory=list)

    def add(self, record: LogRecord) -> ServerError | None:
        """Takes a record; gives its error where it is one that does not only follow from an earlier one."""
        if record.message.strip():
            self.tail.append(record.message.splitlines()[-1])
        if not record.is_error or is_noise(record.message):
            return None
        known = classify(record.message)
        error = known or ServerError(ErrorClass.OTHER, describe(record), "Look at the server's log.")
        if known is not None:
            error = ServerError(known.kind, known.message[:_SHOWN], known.remedy, known.permanent)
        rank = 2 if is_consequence(record.message) else 0 if known is not None else 1
        if rank == 2 and self._errors:
            return None
        self.counts[error.kind] += 1
        # Records of several processes are complete in another order than they began in.
        self._errors.append((rank, record.line, error))
        self._errors = [min(self._errors, key=itemgetter(0, 1))]
        return error

    @property
    def first(self) -> ServerError | None:
        """The first error that a rule knows, else the first of any kind, else the first that follows from another."""
        return self._errors[0][2] if self._errors else None


_PHASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"non-default args:", "vLLM has started"),
        (r"Resolved architecture: (?P<detail>\w+)", "model found"),
        (r"(?P<detail>Fetching \d+ files|[\w.-]+\.safetensors:\s+\d+%.*?/\s*\S+)", "downloading"),
        (r"Initializing a V1 LLM engine \((?P<detail>[^)]*)\)", "starting the engine"),
        (r"Starting to load model", "loading the model"),
        (r"checkpoint shards: +(?P<detail>\d+%)", "loading the weights"),
        (r"Loading weights took (?P<detail>[\d.]+ seconds)", "weights are loaded"),
        (r"torch\.compile takes|Compiling a graph|Directly load the compiled graph", "compiling"),
        (r"KV cache size: (?P<detail>[\d,]+ tokens)", "memory for pages in flight"),
        (r"Capturing CUDA graph", "capturing CUDA graphs"),
        (r"init engine .* took (?P<detail>[\d.]+ s(?:econds)?)", "the engine is up"),
        (r"Application startup complete", "the server is up"),
    )
)


def phase_of(record: LogRecord) -> str | None:
    """What a starting server is about, in words; None for a record that tells nothing of it."""
    for pattern, text in _PHASES:
        if match := pattern.search(record.message):
            detail = match.groupdict().get("detail")
            return f"{text} ({detail.strip()})" if detail else text
    return None


def split_lines(data: str) -> Iterator[str]:
    """Lines of text in which progress bars overwrite themselves with carriage returns."""
    for line in data.split("\n"):
        yield from (part for part in line.split("\r") if part)
