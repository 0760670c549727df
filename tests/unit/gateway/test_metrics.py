from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pagemill.domain import PageError, PageResult, Priority, QueueStats
from pagemill.gateway.metrics import Metrics, forget_process


def lines(metrics: Metrics) -> set[str]:
    return set(metrics.render().decode().splitlines())


def test_pages_are_counted_by_outcome_and_code() -> None:
    metrics = Metrics()
    metrics.page_finished(PageResult(0, "text"), 0.5)
    metrics.page_finished(PageResult(1, "", error=PageError("engine_timeout", "Late.")), 2.0)
    metrics.page_finished(PageResult(2, "", error=PageError("engine_timeout", "Late.")), 2.0)
    assert {
        'pagemill_pages_total{code="",outcome="ok"} 1.0',
        'pagemill_pages_total{code="engine_timeout",outcome="failed"} 2.0',
        'pagemill_stage_seconds_sum{stage="page"} 4.5',
    } <= lines(metrics)


def test_the_queue_is_told_by_priority_even_where_it_is_empty() -> None:
    metrics = Metrics()
    metrics.set_queue(
        QueueStats(
            queued={Priority.BATCH: 7}, running={}, tasks_queued={}, tasks_leased={}, oldest_s={Priority.BATCH: 12.5}
        )
    )
    assert {
        'pagemill_jobs_queued{priority="batch"} 7.0',
        'pagemill_jobs_queued{priority="interactive"} 0.0',
        'pagemill_queue_oldest_seconds{priority="batch"} 12.5',
    } <= lines(metrics)


def test_servers_are_told_by_number_and_truth() -> None:
    metrics = Metrics()
    metrics.set_endpoints(
        [{"url": "http://a/v1", "in_use": True, "window": 8}, {"url": "http://b/v1", "in_use": False}]
    )
    assert {
        'pagemill_endpoint{url="http://a/v1",what="in_use"} 1.0',
        'pagemill_endpoint{url="http://a/v1",what="window"} 8.0',
        'pagemill_endpoint{url="http://b/v1",what="in_use"} 0.0',
    } <= lines(metrics)
    assert "url" not in {line.partition('what="')[2].partition('"')[0] for line in lines(metrics)}


PROCESS = """
import os
from pagemill.gateway.metrics import Metrics
metrics = Metrics()
metrics.request_done("GET", "/v1/jobs", 200, 0.1)
metrics.set_gate(waiting=3, tokens=10, window=100)
print(os.getpid(), flush=True)
if input() == "tell":
    print(metrics.render().decode())
"""


def test_processes_tell_their_sums_and_those_that_have_ended_are_not_live(tmp_path: Path) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROCESS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen(command, **pipes) as first, subprocess.Popen(command, **pipes) as second:
        gone = int(first.stdout.readline())
        second.stdout.readline()
        first.communicate("end\n")
        forget_process(gone, tmp_path)
        told = second.communicate("tell\n")[0].splitlines()
    assert 'pagemill_http_requests_total{method="GET",route="/v1/jobs",status="200"} 2.0' in told
    assert "pagemill_gate_waiting 3.0" in told
