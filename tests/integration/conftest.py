"""Fixtures of tests that attack the gateway."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway_process import BODY_BYTES, GatewayProcess, running_gateway

WEBHOOK_SECRET = "whsec_" + base64.b64encode(b"a secret that must not be shown").decode()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A service with keys for two people, small limits and everything in its log."""
    folder = tmp_path_factory.mktemp("gateway")
    limits = {
        "BODY_BYTES": str(BODY_BYTES),
        "JSON_BYTES": str(BODY_BYTES),
        "BODY_IDLE_S": "1",
        "BODY_TOTAL_S": "5",
        "HEAD_S": "2",
        "FILES": "3",
    }
    settings = {f"GATEWAY__LIMITS__{name}": value for name, value in limits.items()}
    with running_gateway(
        folder, GATEWAY__AUTH="required", GATEWAY__WEBHOOK__SECRET=WEBHOOK_SECRET, **settings
    ) as found:
        for name in ("alice", "bob"):
            found.make_key(name)
        yield found


@pytest.fixture(scope="module")
def pdf(make_pdf: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_pdf(tmp_path_factory.mktemp("pdf") / "a.pdf").read_bytes()


@pytest.fixture
def alive(service: GatewayProcess, pdf: bytes) -> Iterator[None]:
    """After the test the service must still do its work."""
    yield
    submitted = service.upload(pdf, key="alice")
    assert submitted.status == 202, submitted.body
    assert service.ended(submitted.json["id"], key="alice")["status"] == "succeeded"
