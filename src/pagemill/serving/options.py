"""How `vllm serve` is started and watched."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

_STRICT = ConfigDict(extra="forbid", frozen=True)

ModelSource = Literal["hf", "modelscope"]
Device = Literal["auto", "cpu"]


class WatchOptions(BaseModel):
    """When a server counts as started, hung or failed, and how it is started again."""

    model_config = _STRICT

    start_timeout_s: float = Field(
        1800.0, gt=0, description="Seconds from the start to a good canary page; the first start downloads the model."
    )
    start_attempts: int = Field(
        3, ge=1, description="Starts that may fail, before any has worked, until pagemill gives up."
    )
    poll_interval_s: float = Field(1.0, gt=0, description="Seconds between two looks at a server that starts.")
    canary_timeout_s: float = Field(300.0, gt=0, description="Seconds that the canary page may take.")
    liveness_interval_s: float = Field(10.0, gt=0, description="Seconds between two looks at a server that works.")
    liveness_misses: int = Field(3, ge=1, description="Looks in a row without a new token while work is in flight.")
    probe_timeout_s: float | None = Field(
        None,
        gt=0,
        description="Seconds that a probe page may go without a token after those, until the engine counts as hung; "
        "nothing: 60, on a CPU 900.",
    )
    idle_probe_s: float = Field(
        60.0, ge=0, description="Seconds without a new token after which an idle server gets a probe page; 0: never."
    )
    backoff_first_s: float = Field(1.0, gt=0, description="Seconds before the first restart; doubled each time.")
    backoff_most_s: float = Field(60.0, gt=0, description="Most seconds before a restart.")
    backoff_reset_s: float = Field(
        600.0, gt=0, description="Seconds of good service after which it starts small again."
    )
    drain_timeout_s: int = Field(60, ge=0, description="Seconds that pages in flight may take at a stop.")
    stop_grace_s: float = Field(
        15.0, gt=0, description="Seconds beyond that until the server's processes are killed, hung or not."
    )


class ServeOptions(BaseModel):
    """Options of `pagemill serve`; unknown ones are refused."""

    model_config = _STRICT

    model: str = Field("lightonai/LightOnOCR-2-1B", min_length=1, description="Model id on a hub, or a folder.")
    source: ModelSource = Field("hf", description="Hub of the model id: Hugging Face or ModelScope.")
    hub_endpoint: str | None = Field(None, description="Mirror of the hub, e.g. https://hf-mirror.com.")
    offline: bool = Field(default=False, description="Use only what has been downloaded before.")
    revision: str | None = Field(None, description="Revision of the model on the hub.")
    served_name: str = Field("lightonocr", min_length=1, description="Name under which clients ask for the model.")
    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on; 0.0.0.0 for all, with api_key.")
    port: int | Literal["auto"] = Field(8000, description="Port to listen on; auto: any that is free.")
    api_key: SecretStr | None = Field(None, description="Key that clients must send.")
    vllm: Path | None = Field(None, description="The vllm executable; nothing: beside this Python, else on PATH.")
    device: Device = Field("auto", description="auto: the GPUs that vLLM was built for; cpu: a CPU build of vLLM.")
    gpus: int | None = Field(None, ge=1, description="GPUs to use; nothing: all.")
    tensor_parallel: int = Field(
        1, ge=1, description="GPUs that share one copy of the model; more than 1 is slower for a model of this size."
    )
    dtype: str = Field("auto", description="Number format of the weights, as vLLM names it.")
    max_model_len: int | None = Field(None, ge=1, description="Tokens of page and answer; nothing: the model's own.")
    gpu_memory_utilization: float | None = Field(
        None, gt=0, le=1, description="Part of each GPU's memory to use; nothing: vLLM's own default, on a CPU 0.4."
    )
    max_num_seqs: int | None = Field(None, ge=1, description="Pages at once per engine; nothing: 512, on a CPU 8.")
    max_num_batched_tokens: int | None = Field(
        None, ge=1, description="Tokens of one step; nothing: 16384, on a CPU vLLM's own default."
    )
    gateway: bool | None = Field(
        None, description="Start the document service in front of it; nothing: where its packages are installed."
    )
    extra_args: tuple[str, ...] = Field((), description="More flags for vllm serve, as they are.")
    log_file: Path | None = Field(None, description="File for the server's log, as JSON lines.")
    watch: WatchOptions = WatchOptions()

    @field_validator("port")
    @classmethod
    def _is_a_port(cls, port: int | str) -> int | str:
        if isinstance(port, int) and not 1 <= port <= 65_535:
            raise ValueError("a port is from 1 to 65535")
        return port
