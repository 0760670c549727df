from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pagemill.domain.errors import ConfigurationError, MissingDependencyError
from pagemill.serving.command import ServeCommand, build_command, find_executable, resolve_model
from pagemill.serving.options import ServeOptions

VLLM = Path("/venv/bin/vllm")


def build(gpus: int = 1, version: tuple[int, ...] = (0, 30), environment: Any = None, **options: Any) -> ServeCommand:
    return build_command(
        ServeOptions(**options), VLLM, port=8000, gpus=gpus, vllm_version=version, environment=environment or {}
    )


def value_of(command: ServeCommand, flag: str) -> str | None:
    return command.argv[command.argv.index(flag) + 1] if flag in command.argv else None


def test_one_gpu_gets_one_engine_that_keeps_no_pages() -> None:
    command = build()
    assert command.argv[:3] == (str(VLLM), "serve", "lightonai/LightOnOCR-2-1B")
    assert value_of(command, "--host") == "127.0.0.1"
    assert value_of(command, "--served-model-name") == "lightonocr"
    assert value_of(command, "--limit-mm-per-prompt") == '{"image":1}'
    assert value_of(command, "--mm-processor-cache-gb") == "0"
    assert "--no-enable-prefix-caching" in command.argv
    assert "--data-parallel-size" not in command.argv
    assert command.base_url == "http://127.0.0.1:8000/v1"


def test_several_gpus_get_an_engine_each_unless_tensor_parallelism_is_asked_for() -> None:
    assert value_of(build(gpus=4), "--data-parallel-size") == "4"
    assert value_of(build(gpus=4), "--tensor-parallel-size") is None
    both = build(gpus=4, tensor_parallel=2)
    assert value_of(both, "--data-parallel-size") == "2"
    assert value_of(both, "--tensor-parallel-size") == "2"


def test_a_cpu_gets_no_flags_of_gpus() -> None:
    command = build(gpus=0)
    assert value_of(command, "--max-num-seqs") == "8"
    assert value_of(command, "--max-num-batched-tokens") is None


def test_a_cpu_leaves_memory_to_others_unless_told_otherwise() -> None:
    assert value_of(build(gpus=0), "--gpu-memory-utilization") == "0.4"
    assert value_of(build(gpus=0, gpu_memory_utilization=0.7), "--gpu-memory-utilization") == "0.7"
    assert value_of(build(gpus=1), "--gpu-memory-utilization") is None


def test_the_key_is_in_the_environment_alone() -> None:
    command = build(api_key="hunter2")
    assert command.environment["VLLM_API_KEY"] == "hunter2"
    assert "hunter2" not in " ".join(command.argv)
    assert "hunter2" not in repr(command)


def test_hubs_mirrors_and_offline_reach_vllm_by_its_environment() -> None:
    assert build(hub_endpoint="https://hf-mirror.com/").environment["HF_ENDPOINT"] == "https://hf-mirror.com"
    modelscope = build(source="modelscope", hub_endpoint="https://www.modelscope.ai").environment
    assert modelscope["VLLM_USE_MODELSCOPE"] == "True"
    assert modelscope["MODELSCOPE_DOMAIN"] == "www.modelscope.ai"
    assert "HF_ENDPOINT" not in modelscope
    assert build(offline=True).environment["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in build().environment
    assert build(environment={"HF_TOKEN": "x"}).environment["HF_TOKEN"] == "x"


def test_nothing_of_the_documents_is_reported_anywhere() -> None:
    assert build().environment["VLLM_NO_USAGE_STATS"] == "1"


def test_a_vllm_that_cannot_drain_gets_no_flag_for_it() -> None:
    assert value_of(build(version=(0, 32)), "--shutdown-timeout") == "60"
    old = build(version=(0, 12))
    assert "--shutdown-timeout" not in old.argv
    assert any("cannot finish pages" in warning for warning in old.warnings)


@pytest.mark.parametrize(
    ("flag", "remedy"),
    [
        ("--request-rate-limit", "no such flag"),
        ("--disable-log-requests", "no such flag"),
        ("--disable-log-stats", "metric"),
        ("--disable_log_stats", "metric"),
        ("--api-key=secret", "PAGEMILL_SERVE__API_KEY"),
        ("--port", "--port before the --"),
    ],
)
def test_flags_that_cannot_work_are_refused_with_what_to_do(flag: str, remedy: str) -> None:
    with pytest.raises(ConfigurationError, match=remedy) as caught:
        build(extra_args=("--enforce-eager", flag, "5"))
    assert "secret" not in str(caught.value)


def test_other_flags_are_passed_on_at_the_end() -> None:
    assert build(extra_args=("--kv-cache-dtype", "fp8")).argv[-2:] == ("--kv-cache-dtype", "fp8")


def test_more_gpus_than_there_are_or_that_cannot_be_grouped_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="3 GPUs are asked for, 2 are there"):
        build_command(ServeOptions(gpus=3), VLLM, port=1, gpus=2, vllm_version=(0, 30), environment={})
    with pytest.raises(ConfigurationError, match="groups of 2"):
        build(gpus=3, tensor_parallel=2)


def test_variables_without_effect_and_open_doors_are_told() -> None:
    assert any("VLLM_ATTENTION_BACKEND" in text for text in build(environment={"VLLM_ATTENTION_BACKEND": "X"}).warnings)
    assert any("Anyone" in text for text in build(host="0.0.0.0").warnings)
    assert not build(host="0.0.0.0", api_key="k").warnings


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:8000/v1"), ("::", "http://[::1]:8000/v1"), ("::1", "http://[::1]:8000/v1")],
)
def test_the_url_is_one_that_this_machine_reaches(host: str, url: str) -> None:
    assert build(host=host).base_url == url


def test_models_are_folders_or_hub_ids(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(ConfigurationError, match=r"no config\.json"):
        resolve_model(str(folder))
    (folder / "config.json").write_text("{}")
    assert resolve_model(str(folder)) == str(folder)
    assert resolve_model("lightonai/LightOnOCR-2-1B") == "lightonai/LightOnOCR-2-1B"
    gguf = tmp_path / "model.gguf"
    gguf.touch()
    with pytest.raises(ConfigurationError, match=r"llama\.cpp"):
        resolve_model(str(gguf))
    for wrong in (str(tmp_path / "missing"), "./missing/model/x", "LightOnOCR"):
        with pytest.raises(ConfigurationError, match="no hub id"):
            resolve_model(wrong)


def test_the_executable_is_the_one_that_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    with pytest.raises(ConfigurationError, match="no vllm executable at"):
        find_executable(tmp_path / "vllm", {})
    with pytest.raises(MissingDependencyError, match="pip install vllm"):
        find_executable(None, {"PATH": str(tmp_path)})
    for folder in ("path", "bin"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "vllm").write_text("#!/bin/sh\n")
        (tmp_path / folder / "vllm").chmod(0o755)
        assert find_executable(None, {"PATH": str(tmp_path / "path")}) == tmp_path / folder / "vllm"
