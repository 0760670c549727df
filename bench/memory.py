"""Memory of a process and all its descendants, sampled while it runs."""

from __future__ import annotations

import threading
import time

import psutil


class MemorySampler(threading.Thread):
    """Samples the memory of a process and all its descendants."""

    def __init__(self, pid: int, interval_s: float = 0.5) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._interval_s = interval_s
        self._stop_wanted = threading.Event()
        self.samples: list[tuple[float, float]] = []

    def run(self) -> None:
        """Samples until it is stopped."""
        started = time.monotonic()
        while not self._stop_wanted.wait(self._interval_s):
            self.samples.append((time.monotonic() - started, tree_pss_mb(self._pid)))

    def stop(self) -> None:
        """Stops and waits for the last sample."""
        self._stop_wanted.set()
        self.join()

    @property
    def peak_mb(self) -> float:
        """The highest sample."""
        return max((mb for _, mb in self.samples), default=0.0)


def tree_pss_mb(pid: int) -> float:
    """PSS in MB of a process and its descendants; 0 once it is gone."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    total = 0
    for member in family:
        try:
            total += member.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total / 2**20
