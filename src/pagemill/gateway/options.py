"""Options of the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from pagemill.jobs.store import StoreOptions

_STRICT = ConfigDict(extra="forbid", frozen=True)


class LimitOptions(BaseModel):
    """What a request or a document may be at most."""

    model_config = _STRICT

    body_bytes: int = Field(50 * 2**20, ge=1024, description="Bytes of a request's body.")
    json_bytes: int = Field(
        70 * 2**20, ge=1024, description="Bytes of a JSON body that carries documents (base64 takes a third more)."
    )
    connections: int = Field(
        800, ge=1, description="Connections of one process; more are closed. Must be below the limit of open files."
    )
    head_s: float = Field(20.0, gt=0, description="Seconds in which the head of a request must have arrived.")
    answer_idle_s: float = Field(
        60.0, gt=0, description="Seconds in which a client must have read something of its answer."
    )
    body_idle_s: float = Field(30.0, gt=0, description="Seconds without a byte of a body before it is given up.")
    body_total_s: float = Field(600.0, gt=0, description="Seconds in which a whole body must have arrived.")
    streams: int = Field(200, ge=1, description="Event streams of one process that are open at once.")
    files: int = Field(100, ge=1, description="Documents of one batch.")
    pages: int = Field(5000, ge=1, description="Pages of one document.")
    job_s: float = Field(6 * 3600.0, gt=0, description="Seconds for a job from its acceptance to its end.")


class RateOptions(BaseModel):
    """Rate smoothing: token buckets over all processes. Nothing is limited unless a rate is given."""

    model_config = _STRICT

    per_key: float | None = Field(None, gt=0, description="Requests a second of one key.")
    per_key_burst: float = Field(10.0, ge=1, description="Requests of one key that may come at once.")
    total: float | None = Field(None, gt=0, description="Requests a second of all keys together.")
    total_burst: float = Field(100.0, ge=1, description="Requests of all keys that may come at once.")
    max_delay_s: float = Field(
        2.0, ge=0, description="A request that would have to wait no longer is held back; beyond, it is answered 429."
    )


class FetchOptions(BaseModel):
    """Documents named by http(s) URLs. Off unless asked for: it lets callers make this machine send requests."""

    model_config = _STRICT

    enabled: bool = Field(default=False, description="Whether http and https URLs are fetched at all.")
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="Hosts that may be named; `*.example.com` for all below, `host:8443` for a port other than 80 and "
        "443. Empty: any with a public address.",
    )
    allow_private: bool = Field(
        default=False, description="Whether hosts among `allowed_hosts` may have private addresses."
    )
    max_redirects: int = Field(3, ge=0, description="Redirects that are followed, each checked anew.")
    timeout_s: float = Field(60.0, gt=0, description="Seconds for the whole fetch.")


class WebhookOptions(BaseModel):
    """Calls to the outside when a job has ended."""

    model_config = _STRICT

    secret: SecretStr | None = Field(
        None, description="Signs the calls (Standard Webhooks): `whsec_` and 24 to 64 bytes in base64. None: no calls."
    )
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="Hosts that may be called; `*.example.com` for all below, `host:8443` for a port other than 80 and "
        "443. Empty: any with a public address.",
    )
    allow_private: bool = Field(
        default=False, description="Whether hosts among `allowed_hosts` may have private addresses."
    )
    attempts: int = Field(8, ge=1, description="Tries, at growing intervals, before a call is given up.")
    timeout_s: float = Field(15.0, gt=0, description="Seconds for one try.")


class GatewayOptions(BaseModel):
    """How the gateway runs."""

    model_config = _STRICT

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="Port; 0 for any free one.")
    processes: int = Field(1, ge=1, le=64, description="Processes that serve and work.")
    data: Path = Field(Path("pagemill-data"), description="Folder for database and documents, where no URL is given.")
    database: SecretStr | None = Field(
        None, description="Database URL: postgresql://..., or sqlite:///file. Nothing: SQLite in the data folder."
    )
    blobs: str | None = Field(
        None, description="Where documents are kept: a folder, or an fsspec URL such as s3://bucket/prefix."
    )
    engine_status: Path | None = Field(
        None, description="File in which `pagemill serve` tells how its server fares; shown in the metrics."
    )
    traces: str | None = Field(
        None, description="Base URL of an OpenTelemetry collector (OTLP over HTTP), e.g. http://127.0.0.1:4318."
    )
    auth: Literal["auto", "required", "off"] = Field(
        "auto", description="API keys: asked for when one exists or the service listens beyond this machine."
    )
    work: bool = Field(default=True, description="Whether these processes also work on jobs.")
    window_tokens: int = Field(
        1_048_576, ge=1024, description="Tokens of images and expected answers that one process has in flight."
    )
    max_waiting: int = Field(
        1024, ge=1, description="Requests of the OpenAI API that wait in one process before others are answered 429."
    )
    waiting_bytes: int = Field(
        512 * 2**20, ge=2**20, description="Bytes of such requests that one process holds in memory."
    )
    drain_s: float = Field(30.0, ge=0, description="Seconds for a graceful stop.")
    store: StoreOptions = StoreOptions()
    limits: LimitOptions = LimitOptions()
    rate: RateOptions = RateOptions()
    fetch: FetchOptions = FetchOptions()
    webhook: WebhookOptions = WebhookOptions()
