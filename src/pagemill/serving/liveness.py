"""Whether an engine works: tokens that come while work is in flight; pure.

A hung engine keeps /health at 200. So the judge is what it writes: an engine that has pages in flight and gives no
token at several looks in a row is suspected, and hung if a probe page then gets no token either. A slow engine gives
few tokens, but it gives some, and is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

# vllm:iteration_tokens_total counts the engine's steps: it moves within a long prefill, when no token comes out yet.
_PROGRESS = ("vllm:generation_tokens_total", "vllm:prompt_tokens_total", "vllm:iteration_tokens_total_count")
_IN_FLIGHT = ("vllm:num_requests_running", "vllm:num_requests_waiting")
_SAMPLE = re.compile(r"(?P<name>[\w:]+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")
_ENGINE = re.compile(r'(?:^|,)engine="(?P<engine>[^"]*)"')


@dataclass(frozen=True, slots=True)
class EngineSample:
    """What the metrics say of one engine.

    Attributes:
        progress: Grows with each token and each step.
        in_flight: Pages that run or wait.
    """

    progress: float = 0.0
    in_flight: float = 0.0


def parse_metrics(text: str) -> dict[str, EngineSample]:
    """Reads Prometheus' text format; samples by the label `engine` (a server has one for each GPU)."""
    progress: dict[str, float] = {}
    in_flight: dict[str, float] = {}
    for line in text.splitlines():
        match = None if line.startswith("#") else _SAMPLE.match(line)
        if match is None or match["name"] not in (*_PROGRESS, *_IN_FLIGHT):
            continue
        label = _ENGINE.search(match["labels"] or "")
        engine = label["engine"] if label else "0"
        sums = progress if match["name"] in _PROGRESS else in_flight
        sums[engine] = sums.get(engine, 0.0) + float(match["value"])
    return {
        name: EngineSample(progress.get(name, 0.0), in_flight.get(name, 0.0))
        for name in sorted(progress.keys() | in_flight.keys())
    }


def with_server_load(samples: Mapping[str, EngineSample], load: float) -> dict[str, EngineSample]:
    """The samples with pages in flight that no engine owns up to: a hung one never takes them up.

    Args:
        samples: What the engines say.
        load: Requests that the HTTP side has not answered yet (/load).
    """
    if load <= sum(sample.in_flight for sample in samples.values()):
        return dict(samples)
    # It is not known whose they are; an engine that works is soon cleared by its tokens, or by a probe page.
    return {name: EngineSample(sample.progress, max(1.0, sample.in_flight)) for name, sample in samples.items()}


class Look(Enum):
    """What a look at the engines found."""

    WORKING = "working"
    """Tokens come, or nothing is in flight."""
    IDLE_FOR_LONG = "idle_for_long"
    """Nothing was in flight for so long that a probe page should show whether it still works."""
    MISSED = "missed"
    """No token, though work is in flight; not yet often enough to be sure."""
    SUSPECT = "suspect"
    """No token at several looks: a probe page must decide."""


class LivenessWatch:
    """Counts looks without a token.

    Args:
        misses: Looks in a row without a token that make an engine suspect.
        idle_s: Seconds without a token after which an idle engine is to be probed; 0 for never.
    """

    def __init__(self, misses: int, idle_s: float) -> None:
        self._most = misses
        self._idle_s = idle_s
        self._progress: dict[str, float] = {}
        self._missed: dict[str, int] = {}
        self._moved_at: dict[str, float] = {}
        self._blind = 0

    def look(self, now: float, samples: Mapping[str, EngineSample] | None) -> Look:
        """Takes a sample.

        Args:
            now: Seconds, monotonic.
            samples: By engine; None where the server did not answer.
        """
        if samples is None:
            self._blind += 1
            return Look.SUSPECT if self._blind >= self._most else Look.MISSED
        self._blind = 0
        for name, sample in samples.items():
            if sample.progress != self._progress.get(name) or name not in self._moved_at:
                self._moved_at[name] = now
                self._missed[name] = 0
            elif sample.in_flight > 0:
                self._missed[name] += 1
            self._progress[name] = sample.progress
        # A page in flight at an idle engine is no miss that counts for later.
        stuck = {name: self._missed[name] for name, sample in samples.items() if sample.in_flight > 0}
        if any(count >= self._most for count in stuck.values()):
            return Look.SUSPECT
        if any(stuck.values()):
            return Look.MISSED
        if self._idle_s and any(now - self._moved_at[name] >= self._idle_s for name in samples):
            return Look.IDLE_FOR_LONG
        return Look.WORKING

    @property
    def engines(self) -> int:
        """How many engines the server has."""
        return len(self._moved_at)

    def progress(self, engine: str) -> float | None:
        """What the last sample said of an engine's progress."""
        return self._progress.get(engine)

    def suspects(self) -> list[str]:
        """Engines that a probe page must clear, all where the server itself does not answer."""
        return [name for name, count in self._missed.items() if count >= self._most] or list(self._missed) or ["0"]

    def quiet(self, now: float) -> Iterable[str]:
        """Engines without a token for the idle time."""
        return [name for name, moved in self._moved_at.items() if now - moved >= self._idle_s]

    def cleared(self, now: float, engine: str) -> None:
        """Tells that a probe page got its token from an engine."""
        self._missed[engine] = 0
        self._moved_at[engine] = now
        self._blind = 0
