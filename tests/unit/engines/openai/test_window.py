from __future__ import annotations

from collections.abc import Callable

import pytest

from pagemill.engines.openai.window import AdaptiveWindow, Overload


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def drive(window: AdaptiveWindow, clock: Clock, pages: int, rate: Callable[[int], float]) -> None:
    """Completes `pages` pages on a server that gives `rate(in flight)` pages a second."""
    for _ in range(pages):
        in_flight = window.limit
        clock.now += 1.0 / rate(in_flight)
        window.on_completed(1000, in_flight / rate(in_flight), in_flight=in_flight)


@pytest.mark.parametrize("knee", [4, 16, 64, 256])
def test_it_climbs_to_where_throughput_stops_growing(knee: int) -> None:
    clock = Clock()
    window = AdaptiveWindow(8, 1, 512, clock=clock)
    drive(window, clock, knee * 80 + 2000, lambda n: min(n, knee) / 10)
    assert knee * 0.8 <= window.limit <= max(knee * 1.6, 10)


def test_it_falls_back_where_more_makes_it_slower() -> None:
    clock = Clock()
    window = AdaptiveWindow(8, 1, 512, clock=clock)
    drive(window, clock, 4000, lambda n: n / 10 if n <= 40 else 40 / 10 * 40 / n)
    assert 20 <= window.limit <= 52


def test_overload_narrows_it_once_for_a_burst_of_signs() -> None:
    clock = Clock()
    window = AdaptiveWindow(60, 1, 512, clock=clock)
    for _ in range(30):
        window.on_overload(Overload.REFUSED)
    assert window.limit == 40
    clock.now += 5
    window.on_overload(Overload.TIMEOUT)
    assert window.limit == 26


def test_it_never_closes() -> None:
    clock = Clock()
    window = AdaptiveWindow(8, 1, 512, clock=clock)
    for _ in range(50):
        clock.now += 100
        window.on_overload(Overload.REFUSED)
    assert window.limit == 1


def test_it_does_not_grow_while_pages_are_lacking() -> None:
    clock = Clock()
    window = AdaptiveWindow(8, 1, 512, clock=clock)
    for _ in range(500):
        clock.now += 0.1
        window.on_completed(1000, 0.1, in_flight=2)
    assert window.limit == 8


def test_a_fixed_window_stays() -> None:
    clock = Clock()
    window = AdaptiveWindow(32, 1, 512, fixed=True, clock=clock)
    drive(window, clock, 1000, lambda n: n / 10)
    window.on_overload(Overload.REFUSED)
    assert window.limit == 32


def test_it_finds_a_new_level_when_the_server_changes() -> None:
    clock = Clock()
    window = AdaptiveWindow(8, 1, 512, clock=clock)
    drive(window, clock, 3000, lambda n: min(n, 64) / 10)
    drive(window, clock, 6000, lambda n: min(n, 128) / 10)
    assert window.limit >= 100
