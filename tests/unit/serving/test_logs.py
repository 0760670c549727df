from __future__ import annotations

from pathlib import Path

import pytest

from pagemill.serving.errors import ErrorClass, classify
from pagemill.serving.logs import ErrorLog, LogParser, LogRecord, describe, phase_of, split_lines

LOGS = Path(__file__).resolve().parents[2] / "data" / "vllm_logs"


def records_of(text: str) -> list[LogRecord]:
    parser = LogParser()
    return [record for line in text.splitlines() for record in parser.feed(line)] + parser.flush()


def errors_of(text: str) -> ErrorLog:
    log = ErrorLog()
    for record in records_of(text):
        log.add(record)
    return log


def test_a_line_of_vllm_is_taken_apart() -> None:
    (record,) = records_of("(APIServer pid=29900) INFO 12-01 04:17:05 [api_utils.py:286] non-default args: {}")
    assert record == LogRecord(
        "APIServer", 29900, "INFO", "12-01 04:17:05", "api_utils.py:286", "non-default args: {}", line=1
    )
    assert record.as_json()["level"] == "info"
    assert "error_class" not in record.as_json()


def test_lines_of_an_error_are_one_record_though_others_write_in_between() -> None:
    text = (
        "(EngineCore pid=1) ERROR 12-01 00:00:00 [core.py:9] EngineCore failed to start.\n"
        "(Worker pid=2) INFO 12-01 00:00:00 [x.py:1] hello\n"
        "(EngineCore pid=1) ERROR 12-01 00:00:01 [core.py:9] Traceback (most recent call last):\n"
        "(EngineCore pid=1) ERROR 12-01 00:00:01 [core.py:9] torch.OutOfMemoryError: CUDA out of memory. Tried\n"
        "(EngineCore pid=1) INFO 12-01 00:00:02 [core.py:9] bye\n"
    )
    hello, error, bye = records_of(text)
    assert (hello.message, bye.message) == ("hello", "bye")
    assert error.message.splitlines()[-1].startswith("torch.OutOfMemoryError")
    assert error.as_json()["error_class"] == "oom"


def test_tracebacks_without_a_header_are_errors_with_what_follows_the_exception() -> None:
    (record,) = [r for r in records_of((LOGS / "folder_without_config.log").read_text()) if r.is_error]
    assert "Invalid repository ID" in describe(record)


def test_the_first_error_is_the_one_that_began_first() -> None:
    text = (
        "(Worker pid=2) ERROR 12-01 00:00:00 [w.py:1] RuntimeError: Cannot find any model weights with `/m`\n"
        "(EngineCore pid=1) ERROR 12-01 00:00:00 [c.py:1] RuntimeError: CUDA error: an illegal memory access\n"
        "(EngineCore pid=1) INFO 12-01 00:00:00 [c.py:2] complete before the first\n"
    )
    first = errors_of(text).first
    assert first is not None
    assert first.kind is ErrorClass.LOAD


def test_what_only_follows_is_shown_only_alone_and_not_counted_twice() -> None:
    follows = "(APIServer pid=1) ERROR 12-01 00:00:00 [a.py:1] EngineDeadError: See stack trace (above)\n"
    cause = "(Worker pid=2) ERROR 12-01 00:00:00 [w.py:1] std::bad_alloc\n"
    alone, both = errors_of(follows), errors_of(cause + follows)
    assert alone.first is not None
    assert alone.first.kind is ErrorClass.MODEL_ERROR
    assert both.first is not None
    assert both.first.kind is ErrorClass.OOM
    assert both.counts == {ErrorClass.OOM: 1}
    after = errors_of(follows + cause)
    assert after.first is not None
    assert after.first.kind is ErrorClass.OOM


@pytest.mark.parametrize(
    ("name", "kind", "words", "permanent"),
    [
        ("missing_folder", ErrorClass.LOAD, "Repo id must be in the form", True),
        ("folder_without_config", ErrorClass.LOAD, "Invalid repository ID or local directory", True),
        ("folder_without_weights", ErrorClass.LOAD, "Cannot find any model weights", True),
        ("damaged_weights", ErrorClass.LOAD, "incomplete metadata", True),
        ("unknown_architecture", ErrorClass.LOAD, "NoSuchForConditionalGeneration", True),
        ("offline_without_download", ErrorClass.LOAD, "outgoing traffic has been disabled", True),
        ("port_in_use", ErrorClass.OTHER, "Address already in use", False),
        ("unknown_flag", ErrorClass.BAD_INPUT, "unrecognized arguments: --request-rate-limit", True),
        ("wrong_value", ErrorClass.BAD_INPUT, "invalid choice: 'float12'", True),
        ("cache_too_small", ErrorClass.OOM, "estimated maximum model length is 1792", True),
        ("memory_taken", ErrorClass.OOM, "less than desired CPU memory utilization", False),
        ("memory_limited", ErrorClass.OOM, "[Errno 12] Cannot allocate memory", False),
        ("max_model_len_too_long", ErrorClass.BAD_INPUT, "greater than the derived max_model_len", True),
        ("engine_killed", ErrorClass.MODEL_ERROR, "EngineDeadError", False),
    ],
)
def test_failures_of_a_real_vllm_are_classified(name: str, kind: ErrorClass, words: str, permanent: bool) -> None:
    first = errors_of((LOGS / f"{name}.log").read_text()).first
    assert first is not None
    assert (first.kind, first.permanent) == (kind, permanent)
    assert words in first.message
    assert first.remedy


# Wording of c10/cuda/CUDACachingAllocator.cpp, c10/core/impl/alloc_cpu.cpp, c10/cuda/CUDAException.h and
# torch/cuda/__init__.py of PyTorch; of vllm/v1/worker/utils.py, vllm/v1/core/kv_cache_utils.py and
# vllm/v1/executor/multiproc_executor.py; of Pillow; of huggingface_hub.
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total", ErrorClass.OOM),
        (
            "ValueError: Free memory on device cuda:0 (3.1/139.8 GiB) on startup is less than desired GPU",
            ErrorClass.OOM,
        ),
        ("ValueError: No available memory for the cache blocks. Try increasing", ErrorClass.OOM),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: not enough memory", ErrorClass.OOM),
        ("OSError: [Errno 12] Cannot allocate memory", ErrorClass.OOM),
        ("OSError: [Errno 28] No space left on device: '/psm_49ab0797'", ErrorClass.OOM),
        ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", ErrorClass.CUDA),
        ("RuntimeError: Found no NVIDIA driver on your system.", ErrorClass.CUDA),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", ErrorClass.CUDA),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", ErrorClass.CUDA),
        ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3356", ErrorClass.CUDA),
        ("RuntimeError: Failed to infer device type, please set", ErrorClass.CUDA),
        ("TimeoutError: RPC call to execute_model timed out.", ErrorClass.TIMEOUT),
        ("ImportError: cannot import name 'PixtralRotaryEmbedding' from 'transformers'", ErrorClass.LOAD),
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error.", ErrorClass.LOAD),
        ("OSError: [Errno 28] No space left on device", ErrorClass.LOAD),
        ("PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object>", ErrorClass.BAD_INPUT),
        ("AssertionError: Encoder cache miss for 1.", ErrorClass.MODEL_ERROR),
    ],
)
def test_well_known_words_are_classified(text: str, kind: ErrorClass) -> None:
    error = classify(text)
    assert error is not None
    assert error.kind is kind


def test_a_crash_of_python_itself_is_an_error() -> None:
    first = errors_of("Fatal Python error: Bus error\n\nThread 0x00007f (most recent call first):\n").first
    assert first is not None
    assert first.kind is ErrorClass.OOM
    assert "--shm-size" in first.remedy


def test_an_unknown_error_keeps_its_words() -> None:
    first = errors_of("(Worker pid=2) ERROR 12-01 00:00:00 [w.py:1] The moon is full\n").first
    assert first is not None
    assert (first.kind, first.message) == (ErrorClass.OTHER, "The moon is full")


def test_a_good_start_has_phases_and_no_errors() -> None:
    text = (LOGS / "start_to_ready.log").read_text()
    assert errors_of(text).first is None
    phases = [phase for record in records_of(text) if (phase := phase_of(record))]
    assert phases[0] == "vLLM has started"
    assert phases[-1] == "the server is up"
    assert "loading the weights (100%)" in phases


def test_libraries_that_write_like_glog_have_levels() -> None:
    (warning,) = records_of("W1201 04:21:20.589000 32626 torch/_library/triton.py:53] Triton not available")
    assert (warning.level, warning.time) == ("WARNING", "12-01 04:21:20")
    (error,) = records_of("[rank0]:[E1201 00:00:00.123456789 ProcessGroupNCCL.cpp:629] Watchdog caught timeout")
    assert error.is_error


def test_colours_go_progress_bars_become_lines_and_a_flood_is_bounded() -> None:
    assert records_of("\x1b[36m(Worker pid=1)\x1b[0m hello")[0].message == "hello"
    assert list(split_lines("a\rb\rc\n\nd")) == ["a", "b", "c", "d"]
    flood = "Traceback (most recent call last):\n" + "  File x\n" * 2000
    assert max(record.message.count("\n") for record in records_of(flood)) <= 400
    assert len(records_of("x" * 100_000)[0].message) <= 4000


def test_an_exception_that_says_its_words_on_the_next_line_is_shown_with_them() -> None:
    text = """Traceback (most recent call last):
  File "/usr/lib/python3.12/multiprocessing/spawn.py", line 164, in get_preparation_data
RuntimeError:
        An attempt has been made to start a new process before the
        current process has finished its bootstrapping phase.
"""
    first = errors_of(text).first
    assert first is not None
    assert first.message == "RuntimeError: An attempt has been made to start a new process before the"
