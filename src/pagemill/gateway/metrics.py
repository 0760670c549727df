"""The service's own metrics, in the form of Prometheus."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from pagemill._version import __version__
from pagemill.domain import PageResult, Priority, QueueStats

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""Variable that names the folder which the processes of a service share."""

_REQUEST_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_STAGE_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300)
_SERVER_STATES = ("starting", "ready", "waiting", "draining", "stopped", "failed")
_Mode = Literal["livesum", "mostrecent"]


class Metrics:
    """What the processes of one service have counted.

    With the variable PROMETHEUS_MULTIPROC_DIR set before the start of the process, `render` tells about all processes
    that share that folder.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def gauge(name: str, text: str, labels: Sequence[str] = (), mode: _Mode = "mostrecent") -> Gauge:
            return Gauge(f"pagemill_{name}", text, labels, registry=registry, multiprocess_mode=mode)

        self._build = gauge("build_info", "Always 1.", ["version", "engine"])
        self._jobs_queued = gauge("jobs_queued", "Jobs that nobody has begun.", ["priority"])
        self._jobs_running = gauge("jobs_running", "Jobs under way.", ["priority"])
        self._oldest = gauge("queue_oldest_seconds", "Age of the oldest job that nobody has begun.", ["priority"])
        self._tasks = gauge("tasks", "Pieces of work.", ["priority", "state"])
        self._finished = gauge("jobs_finished_last_minute", "Jobs that ended in the last 60 s.")
        self._gate_waiting = gauge("gate_waiting", "Requests that wait for the engine.", mode="livesum")
        self._gate_tokens = gauge("gate_tokens", "Tokens in flight.", mode="livesum")
        self._gate_window = gauge("gate_window_tokens", "Tokens that may be in flight.", mode="livesum")
        self._endpoint = gauge("endpoint", "Each engine server, by what is told.", ["url", "what"])
        self._server_state = gauge("server_state", "1 for the state of the supervised server.", ["state"])
        self._server_restarts = gauge("server_restarts", "Restarts of the supervised server.")
        self._server_errors = gauge("server_errors", "Errors of the supervised server, by class.", ["kind"])
        self._streams = gauge("event_streams", "Open event streams.", mode="livesum")
        self._pages = Counter(
            "pagemill_pages", "Pages that were read, or failed.", ["outcome", "code"], registry=registry
        )
        self._lost = Counter("pagemill_leases_lost", "Work that others took over.", registry=registry)
        self._stages = Histogram(
            "pagemill_stage_seconds", "Time of pages.", ["stage"], registry=registry, buckets=_STAGE_SECONDS
        )
        self._chat_tokens = Counter(
            "pagemill_chat_tokens", "Tokens of requests of the OpenAI API.", ["kind"], registry=registry
        )
        self._requests = Counter(
            "pagemill_http_requests", "HTTP requests.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "pagemill_http_request_seconds",
            "Time from a request to the end of its answer.",
            ["route"],
            registry=registry,
            buckets=_REQUEST_SECONDS,
        )

    def describe_engine(self, name: str) -> None:
        """Tells which engine the service has."""
        self._build.labels(__version__, name).set(1)

    def request_done(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts an HTTP request.

        Args:
            method: Of the request.
            route: Template of its path; never the path, which clients choose.
            status: Of the answer.
            seconds: Until the answer's end.
        """
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def page_finished(self, result: PageResult, seconds: float) -> None:
        """Counts a page; `seconds` from the start of its rendering to its result in the store."""
        code = "" if result.error is None else result.error.code
        self._pages.labels("ok" if result.ok else "failed", code).inc()
        self.stage_done("page", seconds)

    def lease_lost(self) -> None:
        """Counts work that was taken away."""
        self._lost.inc()

    def chat_done(self, *, prompt_tokens: int, completion_tokens: int) -> None:
        """Counts a request of the OpenAI API that ended well.

        Args:
            prompt_tokens: As the server counted them; 0 where it did not.
            completion_tokens: Of the answer.
        """
        self._chat_tokens.labels("prompt").inc(prompt_tokens)
        self._chat_tokens.labels("completion").inc(completion_tokens)

    def stage_done(self, stage: str, seconds: float) -> None:
        """Takes the time of a stage of a page: `render`, `wait` for the engine, `recognise`, `store`; `page` is all."""
        self._stages.labels(stage).observe(seconds)

    def set_queue(self, stats: QueueStats) -> None:
        """Takes the state of the queue, which is that of all processes."""
        for priority in Priority:
            name = priority.value
            self._jobs_queued.labels(name).set(stats.queued.get(priority, 0))
            self._jobs_running.labels(name).set(stats.running.get(priority, 0))
            self._oldest.labels(name).set(stats.oldest_s.get(priority, 0.0))
            self._tasks.labels(name, "queued").set(stats.tasks_queued.get(priority, 0))
            self._tasks.labels(name, "leased").set(stats.tasks_leased.get(priority, 0))
        self._finished.set(stats.finished_last_minute)

    def set_gate(self, *, waiting: int, tokens: int, window: int) -> None:
        """Takes the state of this process's gate before the engine."""
        self._gate_waiting.set(waiting)
        self._gate_tokens.set(tokens)
        self._gate_window.set(window)

    def set_streams(self, count: int) -> None:
        """Takes the number of this process's open event streams."""
        self._streams.set(count)

    def set_endpoints(self, endpoints: Sequence[Mapping[str, Any]]) -> None:
        """Takes the state of the engine's servers: of each the `url`, and numbers and truths by name."""
        for endpoint in endpoints:
            for what, value in endpoint.items():
                if isinstance(value, bool | int | float):
                    self._endpoint.labels(str(endpoint.get("url", "")), what).set(value)

    def set_server(self, status: Mapping[str, Any]) -> None:
        """Takes what the supervisor of the engine's server has told."""
        for state in _SERVER_STATES:
            self._server_state.labels(state).set(status["state"] == state)
        self._server_restarts.set(status["restarts"])
        for kind, count in status["errors"].items():
            self._server_errors.labels(kind).set(count)

    def render(self) -> bytes:
        """Everything, in the text form of Prometheus."""
        if os.environ.get(MULTIPROCESS):
            all_processes = CollectorRegistry()
            MultiProcessCollector(all_processes)  # type: ignore[no-untyped-call]
            return generate_latest(all_processes)
        return generate_latest(self._registry)


def forget_process(pid: int, folder: Path) -> None:
    """Leaves a process that has ended out of what is live.

    Args:
        pid: Its id.
        folder: What PROMETHEUS_MULTIPROC_DIR was for it.
    """
    mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
