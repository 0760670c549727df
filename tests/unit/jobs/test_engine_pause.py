from __future__ import annotations

from pagemill.jobs.engine_pause import EnginePause


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_engine_that_never_failed_is_given_work_at_once() -> None:
    pause = EnginePause(Clock())
    assert pause.is_over
    assert not pause.is_suspect


def test_pages_that_fail_together_are_one_failure() -> None:
    clock = Clock()
    pause = EnginePause(clock)
    for _ in range(16):
        pause.failed()
    assert pause.left_s == 1.0


def test_each_failure_after_a_pause_makes_the_next_one_longer_up_to_a_bound() -> None:
    clock = Clock()
    pause = EnginePause(clock)
    lengths = []
    for _ in range(6):
        pause.failed()
        lengths.append(pause.left_s)
        clock.now += pause.left_s
        assert pause.is_over
        assert pause.is_suspect
    assert lengths == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0]


def test_a_page_that_was_read_ends_all_suspicion() -> None:
    pause = EnginePause(Clock())
    pause.failed()
    pause.worked()
    assert pause.is_over
    assert not pause.is_suspect
    pause.failed()
    assert pause.left_s == 1.0
