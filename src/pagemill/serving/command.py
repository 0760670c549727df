"""From options to the command line and environment of `vllm serve`; pure."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pagemill.domain.errors import ConfigurationError, MissingDependencyError
from pagemill.serving.options import ServeOptions

_GPU_SEQUENCES = 512
_CPU_MEMORY = 0.4
"""vLLM's own default, 0.92, fails on any machine that does something else as well."""
_CPU_SEQUENCES = 8
_GPU_BATCHED_TOKENS = 16_384
# The first release that lets pages in flight finish: https://github.com/vllm-project/vllm/pull/36666.
_DRAINS_SINCE = (0, 19)

_DOES_NOT_EXIST = {
    "--request-rate-limit": "vLLM has no rate limit; use --max-num-seqs to bound the pages at once.",
    "--disable-log-requests": "Requests are not logged unless --enable-log-requests is given.",
}
_REFUSED = {
    **{flag: f"vLLM has no such flag. {hint}" for flag, hint in _DOES_NOT_EXIST.items()},
    "--disable-log-stats": "It removes every metric, and pagemill sees by them whether the engine works.",
    "--api-key": "Everyone on the machine could read it; set PAGEMILL_SERVE__API_KEY.",
    "--ssl-keyfile": "pagemill watches the server over plain HTTP; put a proxy with TLS before it.",
    "--ssl-certfile": "pagemill watches the server over plain HTTP; put a proxy with TLS before it.",
    "--uds": "pagemill watches the server over TCP.",
    "--root-path": "pagemill watches the server at its root; put a proxy before it.",
    "--config": "Give its flags one by one.",
    "--headless": "pagemill watches a server that answers requests.",
    "--model": "Use --model before the --.",
    "--host": "Use --host before the --.",
    "--port": "Use --port before the --.",
    "--served-model-name": "Use --served-name before the --.",
    "--tensor-parallel-size": "Use --tensor-parallel before the --.",
    "-tp": "Use --tensor-parallel before the --.",
    "--data-parallel-size": "Use --gpus before the --: one engine runs on each GPU.",
    "-dp": "Use --gpus before the --: one engine runs on each GPU.",
    "--shutdown-timeout": "Set serve.watch.drain_timeout_s.",
}
_WITHOUT_EFFECT = {
    "VLLM_ATTENTION_BACKEND": "use --attention-backend after the --",
    "FLASHINFER_ENABLE_TENSOR_CORE": "there is nothing in its place",
}
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True, slots=True)
class ServeCommand:
    """What is run.

    Attributes:
        argv: Program and arguments.
        environment: The whole environment; holds the API key, so it is never printed.
        base_url: Where clients find the server, with /v1.
        warnings: What is odd but no hindrance, in words.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    base_url: str
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"ServeCommand(argv={self.argv!r}, base_url={self.base_url!r})"


def build_command(
    options: ServeOptions,
    executable: Path,
    *,
    port: int,
    gpus: int,
    vllm_version: tuple[int, ...],
    environment: Mapping[str, str],
) -> ServeCommand:
    """The command for `options`.

    Args:
        options: What is wanted.
        executable: The vllm executable.
        port: Port to listen on.
        gpus: GPUs that are there; 0 for a CPU.
        vllm_version: Numbers of its version; flags that it does not know are left out.
        environment: Environment to start from.

    Raises:
        ConfigurationError: Options contradict each other, the machine, or what vLLM can do.
    """
    check_extra_args(options.extra_args)
    argv = [str(executable), "serve", resolve_model(options.model)]
    argv += ["--host", options.host, "--port", str(port), "--served-model-name", options.served_name]
    argv += ["--dtype", options.dtype, "--limit-mm-per-prompt", '{"image":1}']
    # Each page is new: caches of images and prefixes would cost memory and keep pages of users within reach of others.
    argv += ["--mm-processor-cache-gb", "0", "--no-enable-prefix-caching"]
    # So that /load tells of pages that a hung engine never took up; its own metrics do not count those.
    argv += ["--enable-server-load-tracking"]
    argv += _parallel(options, gpus)
    sequences = options.max_num_seqs or (_GPU_SEQUENCES if gpus else _CPU_SEQUENCES)
    batched = options.max_num_batched_tokens or (_GPU_BATCHED_TOKENS if gpus else None)
    values: dict[str, object] = {
        "--max-num-seqs": sequences,
        "--max-num-batched-tokens": batched,
        "--max-model-len": options.max_model_len,
        "--gpu-memory-utilization": options.gpu_memory_utilization or (None if gpus else _CPU_MEMORY),
        "--revision": options.revision,
    }
    for flag, value in values.items():
        if value is not None:
            argv += [flag, str(value)]
    warnings = _environment_warnings(environment)
    if vllm_version >= _DRAINS_SINCE:
        argv += ["--shutdown-timeout", str(options.watch.drain_timeout_s)]
    else:
        warnings.append("This vLLM cannot finish pages in flight when it is stopped: clients must send them again.")
    if options.host not in ("127.0.0.1", "localhost", "::1") and options.api_key is None:
        warnings.append(f"Anyone who reaches {options.host}:{port} can use the server: set PAGEMILL_SERVE__API_KEY.")
    argv += options.extra_args
    return ServeCommand(
        tuple(argv),
        _environment(options, environment),
        f"http://{_own_address(options.host)}:{port}/v1",
        tuple(warnings),
    )


def _parallel(options: ServeOptions, gpus: int) -> list[str]:
    if not gpus:
        return []
    wanted = options.gpus or gpus
    if wanted > gpus:
        raise ConfigurationError(f"{wanted} GPUs are asked for, {gpus} are there.", "Lower --gpus.")
    replicas, left_over = divmod(wanted, options.tensor_parallel)
    if left_over:
        raise ConfigurationError(
            f"{wanted} GPUs cannot be shared out in groups of {options.tensor_parallel}.",
            "Leave --tensor-parallel at 1: a model of this size fits on one GPU, and one engine per GPU is faster.",
        )
    argv = []
    if replicas > 1:
        argv += ["--data-parallel-size", str(replicas)]
    if options.tensor_parallel > 1:
        argv += ["--tensor-parallel-size", str(options.tensor_parallel)]
    return argv


def _environment(options: ServeOptions, environment: Mapping[str, str]) -> dict[str, str]:
    own = {
        "PYTHONUNBUFFERED": "1",
        "VLLM_LOGGING_COLOR": "0",
        # Documents are private: nothing about their processing leaves the machine.
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }
    if options.source == "modelscope":
        own["VLLM_USE_MODELSCOPE"] = "True"
        if options.hub_endpoint:
            own["MODELSCOPE_DOMAIN"] = options.hub_endpoint.split("://")[-1].rstrip("/")
    elif options.hub_endpoint:
        own["HF_ENDPOINT"] = options.hub_endpoint.rstrip("/")
    if options.offline:
        own |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    if options.api_key is not None:
        # In the environment, since arguments can be read by every user of the machine.
        own["VLLM_API_KEY"] = options.api_key.get_secret_value()
    return {**environment, **own}


def _environment_warnings(environment: Mapping[str, str]) -> list[str]:
    return [
        f"The environment variable {name} has no effect on this vLLM: {instead}."
        for name, instead in _WITHOUT_EFFECT.items()
        if name in environment
    ]


def _own_address(host: str) -> str:
    """The address under which this machine reaches a server that listens on `host`."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - only compared
    return everywhere.get(host, f"[{host}]" if ":" in host else host)


def check_extra_args(arguments: tuple[str, ...]) -> None:
    """Refuses flags that do not exist, that blind pagemill, or that it sets itself.

    Raises:
        ConfigurationError: With what to do instead.
    """
    for argument in arguments:
        # vLLM takes underscores for dashes in flags.
        flag = argument.split("=", 1)[0].replace("_", "-") if argument.startswith("-") else ""
        if flag in _REFUSED:
            raise ConfigurationError(f"{flag} cannot be passed to vllm serve.", _REFUSED[flag])


def resolve_model(model: str) -> str:
    """The model as vLLM takes it: the absolute path of a folder, or a hub id.

    Raises:
        ConfigurationError: It is a path without a model, or neither.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ConfigurationError(
                f"The folder {path} holds no model: it has no config.json.",
                "Give the folder into which the model was downloaded, with config.json and *.safetensors.",
            )
        return str(path.resolve())
    if path.is_file():
        raise ConfigurationError(
            f"{path} is a file; vLLM takes a folder or a hub id.",
            "GGUF files are for llama.cpp: run llama-server and give its URL to pagemill convert --endpoint.",
        )
    if not _HUB_ID.fullmatch(model):
        raise ConfigurationError(
            f"There is no folder {model}, and it is no hub id.",
            "Give an existing folder, or an id such as lightonai/LightOnOCR-2-1B.",
        )
    return model


def find_executable(wanted: Path | None, environment: Mapping[str, str]) -> Path:
    """The vllm executable: the one that is wanted, else beside this Python, else on PATH.

    Raises:
        MissingDependencyError: There is none.
        ConfigurationError: The one that is wanted does not exist.
    """
    if wanted is not None:
        if not wanted.is_file():
            raise ConfigurationError(f"There is no vllm executable at {wanted}.", "Check --vllm.")
        return wanted.absolute()
    beside = Path(sys.executable).parent / "vllm"
    if beside.is_file():
        return beside
    found = shutil.which("vllm", path=environment.get("PATH"))
    if found is None:
        raise MissingDependencyError(
            "vLLM is not installed.",
            "In an environment of its own: pip install vllm==0.30.0 transformers==5.16.1, then give its executable "
            "with --vllm; or read pages without it: pagemill convert --engine embedded, or --endpoint URL.",
        )
    return Path(found)
