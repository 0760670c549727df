from __future__ import annotations

import pytest

from pagemill.domain.errors import (
    EngineOverloadedError,
    EngineTimeoutError,
    EngineUnavailableError,
    PageQuarantinedError,
    RequestRejectedError,
)
from pagemill.engines.openai.tries import Tries

DEATH = EngineUnavailableError("died", while_reading=True)
GONE = EngineUnavailableError("gone")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_failures_use_up_attempts_and_the_last_one_is_told() -> None:
    tries = Tries(3, 60)
    assert [tries.after(GONE), tries.after(EngineTimeoutError("late"))] == [0, 0]
    with pytest.raises(EngineUnavailableError, match="gone"):
        tries.after(GONE)


def test_a_refused_page_is_given_up_at_once() -> None:
    with pytest.raises(RequestRejectedError):
        Tries(3, 60).after(RequestRejectedError("no image"))


def test_two_deaths_are_a_quarantine_and_other_failures_are_not() -> None:
    tries = Tries(9, 60)
    for error in (DEATH, GONE, GONE):
        tries.after(error)
    assert tries.deaths == 1
    with pytest.raises(PageQuarantinedError, match="died 2 times"):
        tries.after(DEATH)


def test_being_refused_for_want_of_room_uses_up_time_and_no_attempt() -> None:
    clock = Clock()
    tries = Tries(2, 60, clock)
    pauses = []
    for _ in range(6):
        pauses.append(tries.after(EngineOverloadedError("full")))
        clock.now += pauses[-1]
    assert pauses == [1, 2, 4, 8, 16, 30]
    with pytest.raises(EngineOverloadedError):
        tries.after(EngineOverloadedError("full"))
    assert tries.after(GONE) == 0


@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.05), (7.0, 7.0), (86400.0, 30.0)])
def test_the_server_s_word_counts_within_reason(asked: float, waited: float) -> None:
    assert Tries(2, 60).after(EngineOverloadedError("full", retry_after=asked)) == waited


def test_another_failure_ends_the_time_for_which_servers_are_full() -> None:
    clock = Clock()
    tries = Tries(3, 60, clock)
    tries.after(EngineOverloadedError("full"))
    clock.now = 59
    tries.after(GONE)
    clock.now = 61
    assert tries.after(EngineOverloadedError("full")) == 1
