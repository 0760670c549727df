from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import SecretStr

from pagemill.domain import Job, JobStatus, Priority
from pagemill.domain.errors import ConfigurationError, ForbiddenUrlError, StoreUnavailableError
from pagemill.gateway.options import WebhookOptions
from pagemill.gateway.webhooks import (
    INTERVALS_S,
    WebhookSender,
    check_webhook_url,
    signature,
    signing_keys,
    webhook_body,
)
from pagemill.jobs.store import Delivery
from raw_server import serving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET = "whsec_" + "QUJD" * 8
JOB = Job(
    id="job_1",
    key_id="key_1",
    name="a.pdf",
    blob="documents/job_1",
    size=1,
    sha256="0",
    options={},
    priority=Priority.BATCH,
    status=JobStatus.SUCCEEDED,
    created_at=1_700_000_000.0,
    finished_at=1_700_000_001.5,
)
OK = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"


def answer(status: int, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status} X", "Content-Length: 0", *headers, "", ""]).encode()


@dataclass
class Deliveries:
    """Gives each delivery out once and writes down what became of it."""

    waiting: list[Delivery]
    done: list[Delivery] = field(default_factory=list)
    failures: list[tuple[Delivery, str, float | None]] = field(default_factory=list)
    outages: int = 0
    limits: list[int] = field(default_factory=list)

    async def due(self, owner: str, limit: int = 20) -> list[Delivery]:
        if self.outages:
            self.outages -= 1
            raise StoreUnavailableError("The database does not answer.")
        self.limits.append(limit)
        taken, self.waiting = self.waiting[:limit], self.waiting[limit:]
        return taken

    async def delivered(self, delivery: Delivery) -> None:
        self.done.append(delivery)

    async def failed(self, delivery: Delivery, error: str, *, retry_in_s: float | None) -> None:
        self.failures.append((delivery, error, retry_in_s))


def describe(job: Job) -> dict[str, Any]:
    return {"id": job.id, "status": job.status.value, "name": job.name}


def options(port: int = 80, **changes: Any) -> WebhookOptions:
    chosen = {"secret": SecretStr(SECRET), "allowed_hosts": (f"127.0.0.1:{port}",), "allow_private": True, **changes}
    return WebhookOptions(**chosen)


def delivery(port: int, number: int = 1, attempt: int = 1) -> Delivery:
    return Delivery(f"msg_{number}", replace(JOB, id=f"job_{number}"), f"http://127.0.0.1:{port}/hook?t=%2F", attempt)


@contextlib.asynccontextmanager
async def sending(store: Deliveries, chosen: WebhookOptions, **arguments: Any) -> AsyncIterator[WebhookSender]:
    sender = WebhookSender(
        store, chosen, owner="p1", **{"describe": describe, "uniform": lambda low, high: (low + high) / 2, **arguments}
    )
    running = asyncio.ensure_future(sender.run())
    try:
        yield sender
    finally:
        sender.stop()
        await asyncio.wait_for(running, 30)


async def settled(store: Deliveries, count: int = 1) -> None:
    for _ in range(3000):
        if len(store.done) + len(store.failures) >= count:
            return
        await asyncio.sleep(0.01)
    pytest.fail("nothing was written down")


def test_the_signature_is_that_of_the_specification() -> None:
    signed = signature(
        signing_keys(SecretStr(SECRET)), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_two_secrets_both_sign() -> None:
    old, new = signing_keys(SecretStr(SECRET)), signing_keys(SecretStr(OTHER_SECRET))
    both = signing_keys(SecretStr(f"{OTHER_SECRET} {SECRET}"))
    assert signature(both, "m", 1, b"x").split() == [signature(new, "m", 1, b"x"), signature(old, "m", 1, b"x")]


@pytest.mark.parametrize(
    "secret", ["", " ", "hunter2", "whsec_", "whsec_YWJj", "whsec_" + "A" * 120, "whsec_!!!!", SECRET + " hunter2"]
)
def test_a_secret_of_another_form_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(ConfigurationError, match="openssl rand") as caught:
        signing_keys(SecretStr(secret))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED])
def test_a_call_says_what_became_of_the_job_and_when(status: JobStatus) -> None:
    message = json.loads(webhook_body(replace(JOB, status=status, name="发票.pdf"), describe))
    assert message == {
        "type": f"job.{status.value}",
        "timestamp": "2023-11-14T22:13:21.500Z",
        "data": {"job": {"id": "job_1", "status": status.value, "name": "发票.pdf"}},
    }


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/", "file:///etc/passwd", "https://user:p@example.com/", "http://localhost:22/", ""]
)
def test_a_url_is_checked_when_it_is_handed_in(url: str) -> None:
    with pytest.raises(ForbiddenUrlError):
        check_webhook_url(url, WebhookOptions(secret=SecretStr(SECRET)))


def test_a_url_is_refused_while_webhooks_are_off() -> None:
    check_webhook_url("https://example.com/hook", WebhookOptions(secret=SecretStr(SECRET)))
    with pytest.raises(ForbiddenUrlError, match="off"):
        check_webhook_url("https://example.com/hook", WebhookOptions())


def test_a_list_of_hosts_that_cannot_be_read_stops_the_start() -> None:
    with pytest.raises(ConfigurationError, match="is no host"):
        WebhookSender(Deliveries([]), options(allowed_hosts=("https://a.example/",)), owner="p", describe=describe)


async def test_a_delivery_is_posted_signed_and_crossed_off() -> None:
    async with serving(OK) as server:
        store = Deliveries([delivery(server.port)])
        async with sending(store, options(server.port)):
            await settled(store)
    assert [done.id for done in store.done] == ["msg_1"]
    head, body = server.requests[0].decode(), server.bodies[0]
    assert head.startswith("POST /hook?t=%2F HTTP/1.1\r\n")
    assert "Content-Type: application/json\r\n" in head
    headers = dict(re.findall(r"(?m)^(webhook-\w+): (.*)\r$", head))
    assert headers["webhook-id"] == "msg_1"
    stamp = int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == signature(signing_keys(SecretStr(SECRET)), "msg_1", stamp, body)
    assert json.loads(body)["data"]["job"]["id"] == "job_1"


@pytest.mark.parametrize("status", [301, 302, 308, 400, 401, 404, 429, 500, 503])
async def test_any_other_answer_is_tried_again_and_no_redirect_is_followed(status: int) -> None:
    async with (
        serving(OK) as elsewhere,
        serving(answer(status, f"Location: http://127.0.0.1:{elsewhere.port}/")) as server,
    ):
        store = Deliveries([delivery(server.port)])
        hosts = (f"127.0.0.1:{server.port}", f"127.0.0.1:{elsewhere.port}")
        async with sending(store, options(server.port, allowed_hosts=hosts)):
            await settled(store)
        assert elsewhere.requests == []
    assert store.done == []
    assert store.failures == [(delivery(server.port), f"Answered with status {status}.", INTERVALS_S[0])]


async def test_a_receiver_that_is_gone_is_not_called_again() -> None:
    async with serving(answer(410)) as server:
        store = Deliveries([delivery(server.port)])
        async with sending(store, options(server.port)):
            await settled(store)
    assert store.failures[0][2] is None


@pytest.mark.parametrize(
    ("attempt", "retry_in_s"), [(1, 5.0), (2, 30.0), (3, 120.0), (4, 600.0), (7, 6 * 3600.0), (8, None)]
)
async def test_the_intervals_grow_until_the_tries_are_used_up(attempt: int, retry_in_s: float | None) -> None:
    async with serving(answer(500)) as server:
        store = Deliveries([delivery(server.port, attempt=attempt)])
        async with sending(store, options(server.port)):
            await settled(store)
    assert store.failures[0][2] == pytest.approx(retry_in_s)


async def test_a_delivery_that_nobody_could_end_is_given_up_without_another_call() -> None:
    async with serving(OK) as server:
        store = Deliveries([delivery(server.port, attempt=9)])
        async with sending(store, options(server.port)):
            await settled(store)
        assert server.requests == []
    assert store.failures[0][2] is None


async def test_the_intervals_are_spread() -> None:
    async with serving(answer(500)) as server:
        store = Deliveries([delivery(server.port)])
        async with sending(store, options(server.port), uniform=lambda low, _high: low):
            await settled(store)
    assert store.failures[0][2] == pytest.approx(4.0)


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::ffff:169.254.169.254"]])
async def test_a_name_that_leads_inside_by_now_is_not_called(addresses: list[str]) -> None:
    async def lookup(_name: str) -> list[str]:
        return addresses

    async with serving(OK) as server:
        url = f"http://hooks.example:{server.port}/?token=hunter2"
        store = Deliveries([replace(delivery(server.port), url=url)])
        chosen = options(allowed_hosts=(f"hooks.example:{server.port}",), allow_private=False)
        async with sending(store, chosen, lookup=lookup):
            await settled(store)
        assert server.requests == []
    (_, error, retry_in_s) = store.failures[0]
    assert "not public" in error
    assert "hunter2" not in error
    assert retry_in_s == INTERVALS_S[0]


async def test_a_receiver_that_says_nothing_is_given_up() -> None:
    async def silence(_head: bytes, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async with serving(silence) as server:
        store = Deliveries([delivery(server.port)])
        async with sending(store, options(server.port, timeout_s=0.2)):
            await settled(store)
    assert store.failures[0][1] == "No answer in 0.2 s."


async def test_a_receiver_that_cannot_be_reached_is_tried_again() -> None:
    async with serving(OK) as server:
        port = server.port
    store = Deliveries([delivery(port)])
    async with sending(store, options(port)):
        await settled(store)
    assert store.failures[0][1].startswith("No connection")
    assert store.failures[0][2] == INTERVALS_S[0]


async def test_no_more_are_taken_than_can_be_sent_at_once() -> None:
    release = asyncio.Event()

    async def wait(_head: bytes, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(OK)

    async with serving(wait) as server:
        store = Deliveries([delivery(server.port, number) for number in range(50)])
        async with sending(store, options(server.port)):
            while len(server.requests) < 20:
                await asyncio.sleep(0.01)
            assert len(store.waiting) == 30
            release.set()
            await settled(store, 50)
    assert len({done.id for done in store.done}) == 50
    assert max(store.limits) <= 20
    assert min(store.limits) >= 1


async def test_a_stop_lets_what_is_under_way_end() -> None:
    release = asyncio.Event()

    async def wait(_head: bytes, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(OK)

    async with serving(wait) as server:
        store = Deliveries([delivery(server.port)])
        async with sending(store, options(server.port)) as sender:
            while not server.requests:
                await asyncio.sleep(0.01)
            sender.stop()
            release.set()
    assert len(store.done) == 1


async def test_a_store_that_is_away_is_asked_again() -> None:
    async with serving(OK) as server:
        store = Deliveries([delivery(server.port)], outages=2)
        async with sending(store, options(server.port)):
            await settled(store)
    assert len(store.done) == 1


async def test_one_delivery_that_cannot_be_written_does_not_stop_the_others() -> None:
    def refuse(job: Job) -> dict[str, Any]:
        if job.id == "job_1":
            raise ZeroDivisionError
        return describe(job)

    async with serving(OK) as server:
        store = Deliveries([delivery(server.port, 1), delivery(server.port, 2)])
        async with sending(store, options(server.port), describe=refuse):
            await settled(store)
    assert [done.id for done in store.done] == ["msg_2"]


async def test_without_a_secret_nothing_is_taken() -> None:
    store = Deliveries([delivery(80)])
    async with sending(store, options(secret=None)):
        await asyncio.sleep(0)
    assert store.limits == []
