from __future__ import annotations

from pagemill.serving.backoff import Backoff
from pagemill.serving.liveness import EngineSample, LivenessWatch, Look, parse_metrics, with_server_load

METRICS = """\
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="lightonocr"} 86.0
vllm:generation_tokens_total{engine="1",model_name="lightonocr"} 4.0
vllm:prompt_tokens_total{engine="0",model_name="lightonocr"} 2393.0
vllm:iteration_tokens_total_count{engine="0",model_name="lightonocr"} 86.0
vllm:num_requests_running{engine="0",model_name="lightonocr"} 2.0
vllm:num_requests_waiting{engine="0",model_name="lightonocr"} 1.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="lightonocr",reason="capacity"} 1.0
"""


def test_metrics_are_added_up_by_engine() -> None:
    assert parse_metrics(METRICS) == {"0": EngineSample(2565.0, 3.0), "1": EngineSample(4.0, 0.0)}
    assert parse_metrics("vllm:generation_tokens_total 7\n") == {"0": EngineSample(7.0, 0.0)}


def look(watch: LivenessWatch, now: float, progress: float, in_flight: float) -> Look:
    return watch.look(now, {"0": EngineSample(progress, in_flight)})


def test_three_looks_without_a_token_make_an_engine_suspect() -> None:
    watch = LivenessWatch(misses=3, idle_s=0)
    looks = [look(watch, now, 10, 1) for now in range(5)]
    assert looks == [Look.WORKING, Look.MISSED, Look.MISSED, Look.SUSPECT, Look.SUSPECT]
    assert watch.suspects() == ["0"]


def test_a_single_token_clears_a_slow_engine() -> None:
    watch = LivenessWatch(misses=3, idle_s=0)
    progress = [10, 10, 10, 11, 11, 11, 12]
    assert all(look(watch, now, value, 1) is not Look.SUSPECT for now, value in enumerate(progress))


def test_an_idle_engine_is_no_suspect_but_is_probed_after_a_while() -> None:
    watch = LivenessWatch(misses=3, idle_s=60)
    assert look(watch, 0, 10, 0) is Look.WORKING
    assert look(watch, 59, 10, 0) is Look.WORKING
    assert look(watch, 60, 10, 0) is Look.IDLE_FOR_LONG
    assert list(watch.quiet(60)) == ["0"]
    watch.cleared(61, "0")
    assert look(watch, 70, 10, 0) is Look.WORKING
    assert look(LivenessWatch(3, 0), 10_000, 1, 0) is Look.WORKING


def test_one_hung_engine_among_several_is_found() -> None:
    watch = LivenessWatch(misses=2, idle_s=0)
    for now in range(3):
        last = watch.look(now, {"0": EngineSample(now, 5), "1": EngineSample(7, 5)})
    assert last is Look.SUSPECT
    assert watch.suspects() == ["1"]


def test_a_server_that_does_not_answer_is_suspect_too() -> None:
    watch = LivenessWatch(misses=3, idle_s=0)
    assert [watch.look(now, None) for now in range(3)] == [Look.MISSED, Look.MISSED, Look.SUSPECT]
    assert watch.suspects() == ["0"]
    watch.cleared(3, "0")
    assert watch.look(4, None) is Look.MISSED


def test_a_probe_that_was_answered_starts_the_count_anew() -> None:
    watch = LivenessWatch(misses=2, idle_s=0)
    for now in range(3):
        look(watch, now, 1, 1)
    watch.cleared(3, "0")
    assert look(watch, 4, 1, 1) is Look.MISSED


def test_pages_that_a_hung_engine_never_took_up_count_as_in_flight() -> None:
    idle = {"0": EngineSample(5, 0), "1": EngineSample(6, 0)}
    assert [s.in_flight for s in with_server_load(idle, 1).values()] == [1, 1]
    busy = {"0": EngineSample(5, 3), "1": EngineSample(6, 0)}
    assert with_server_load(busy, 3) == busy


def test_the_pause_doubles_up_to_its_cap_and_forgets_after_good_service() -> None:
    backoff = Backoff(1, 60, 600, uniform=lambda low, high: (low + high) / 2)
    assert [backoff.next_wait(0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert backoff.next_wait(599) == 60
    assert backoff.next_wait(600) == 1


def test_the_pause_is_spread_but_never_above_its_cap() -> None:
    assert Backoff(10, 60, 600, uniform=lambda _low, high: high).next_wait(0) == 12.5
    assert Backoff(60, 60, 600, uniform=lambda _low, high: high).next_wait(0) == 60
