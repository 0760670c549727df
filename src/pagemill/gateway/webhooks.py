"""Calls to the outside when a job has ended, signed as https://www.standardwebhooks.com says."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import random
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

import aiohttp
from pydantic import SecretStr

from pagemill._version import __version__
from pagemill.domain import Job
from pagemill.domain.errors import ConfigurationError, FetchError, ForbiddenUrlError, StoreUnavailableError
from pagemill.gateway.addresses import GuardedResolver, HostRules, Lookup, look_up
from pagemill.gateway.options import WebhookOptions
from pagemill.jobs.store import Delivery, WebhookStore
from pagemill.telemetry import get_logger

INTERVALS_S = (5.0, 30.0, 120.0, 600.0, 3600.0, 3 * 3600.0, 6 * 3600.0, 12 * 3600.0)
"""Seconds between tries; the last one again and again."""

_JITTER = 0.2
_PREFIX = "whsec_"
_KEY_BYTES = range(24, 65)
_AT_ONCE = 20
_LOOK_S = 1.0
_LONGEST_TRY_S = 45.0  # the store gives a delivery to this process for a minute
_GONE = 410


def signing_keys(secret: SecretStr) -> tuple[bytes, ...]:
    """The keys that calls are signed with.

    Args:
        secret: `whsec_` and 24 to 64 bytes in base64. Several, with spaces between, all sign: so a secret can be
            replaced without a call that its receiver cannot check.

    Raises:
        ConfigurationError: It is not of that form.
    """
    keys: list[bytes] = []
    for text in secret.get_secret_value().split():
        try:
            key = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
        except ValueError:
            key = b""
        if not text.startswith(_PREFIX) or len(key) not in _KEY_BYTES:
            keys.clear()
            break
        keys.append(key)
    if not keys:
        raise ConfigurationError(
            "The secret of the webhooks is none.", 'Make one: echo "whsec_$(openssl rand -base64 32)".'
        )
    return tuple(keys)


def signature(keys: tuple[bytes, ...], message_id: str, timestamp: int, body: bytes) -> str:
    """Value of the header webhook-signature.

    Args:
        keys: From `signing_keys`.
        message_id: Value of webhook-id.
        timestamp: Value of webhook-timestamp, in seconds since the epoch.
        body: The body as it is sent.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    digests = (hmac.new(key, signed, hashlib.sha256).digest() for key in keys)
    return " ".join("v1," + base64.b64encode(digest).decode() for digest in digests)


def webhook_body(job: Job, describe: Callable[[Job], Mapping[str, Any]]) -> bytes:
    """What is sent when a job has ended: `type`, `timestamp` (of its end) and `data.job`.

    Args:
        job: A job that has ended.
        describe: Gives its public fields, as plain JSON values.
    """
    ended = datetime.fromtimestamp(job.finished_at or job.created_at, timezone.utc)
    message = {
        "type": f"job.{job.status.value}",
        "timestamp": ended.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "data": {"job": describe(job)},
    }
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def check_webhook_url(url: str, options: WebhookOptions) -> None:
    """Checks a URL when it is handed in; where its host leads is checked again with each call.

    Raises:
        ForbiddenUrlError: Webhooks are off, or this URL is not called.
    """
    if options.secret is None:
        raise ForbiddenUrlError(
            "Webhooks are off.", "Ask for the job's state, or have gateway.webhook.secret set by who runs the service."
        )
    _rules(options).check_url(url)


def _rules(options: WebhookOptions) -> HostRules:
    return HostRules(options.allowed_hosts, allow_private=options.allow_private)


class WebhookSender:
    """Sends what is due, until it is stopped. Several processes share the work.

    An answer 2xx ends a delivery, and so does 410 (Gone); after anything else it is tried again, see `INTERVALS_S`,
    until `WebhookOptions.attempts` are used up. Redirects are not followed. The same delivery may arrive twice when a
    process dies at the wrong moment; its id stays the same.

    Args:
        store: Keeps the deliveries.
        options: Secret, hosts and times.
        owner: Id of this process.
        describe: Gives the public fields of a job.
        lookup: Gives the addresses of a name.
        uniform: Gives a number between two.

    Raises:
        ConfigurationError: The secret or a host of the options is none.
    """

    def __init__(
        self,
        store: WebhookStore,
        options: WebhookOptions,
        *,
        owner: str,
        describe: Callable[[Job], Mapping[str, Any]],
        lookup: Lookup = look_up,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._store = store
        self._options = options
        self._owner = owner
        self._describe = describe
        self._lookup = lookup
        self._uniform = uniform
        self._keys = () if options.secret is None else signing_keys(options.secret)
        try:
            self._rules = _rules(options)
        except ValueError as error:
            raise ConfigurationError(f"gateway.webhook.allowed_hosts: {error}.") from error
        self._stopped = asyncio.Event()
        self._log = get_logger("webhooks")

    async def run(self) -> None:
        """Sends until `stop`, then ends what is under way; when cancelled, others send that after a minute.

        Without a secret it only waits for `stop`.
        """
        if not self._keys:
            await self._stopped.wait()
            return
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self._rules, self._lookup), use_dns_cache=False, force_close=True
        )
        tasks: set[asyncio.Task[None]] = set()
        async with aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False
        ) as session:
            try:
                while not self._stopped.is_set():
                    for delivery in await self._due(_AT_ONCE - len(tasks)):
                        task = asyncio.create_task(self._deliver(session, delivery))
                        tasks.add(task)
                        task.add_done_callback(tasks.discard)
                        task.add_done_callback(self._ended)
                    await self._pause(tasks)
                if tasks:
                    await asyncio.wait(tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        """Lets `run` end."""
        self._stopped.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("webhook_crashed", error=repr(error))

    async def _pause(self, tasks: set[asyncio.Task[None]]) -> None:
        """Until it is time to look again, or all hands are free again."""
        stopping = asyncio.ensure_future(self._stopped.wait())
        try:
            full = len(tasks) >= _AT_ONCE
            await asyncio.wait(
                {stopping, *(tasks if full else ())},
                timeout=None if full else _LOOK_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            stopping.cancel()

    async def _due(self, room: int) -> list[Delivery]:
        try:
            return await self._store.due(self._owner, room)
        except StoreUnavailableError as error:
            self._log.warning("webhooks_wait_for_store", error=str(error))
            return []

    async def _deliver(self, session: aiohttp.ClientSession, delivery: Delivery) -> None:
        log = self._log.bind(job=delivery.job.id, webhook=delivery.id, attempt=delivery.attempt)
        if delivery.attempt > self._options.attempts:
            # Those who took it before died of it, or their word of it was lost.
            status, problem = 0, "No process could say what became of it."
        else:
            status, problem = await self._call(session, delivery)
        try:
            if not problem:
                await self._store.delivered(delivery)
                log.info("webhook_delivered", status=status)
                return
            retry_in_s = None if status == _GONE else self._retry_in_s(delivery.attempt)
            await self._store.failed(delivery, problem, retry_in_s=retry_in_s)
            log.warning("webhook_failed", error=problem, retry_in_s=retry_in_s)
        except StoreUnavailableError as error:
            # It stays due, and is sent again under the same id.
            log.warning("webhook_not_recorded", error=str(error))

    async def _call(self, session: aiohttp.ClientSession, delivery: Delivery) -> tuple[int, str]:
        """The status of the answer (0 for none), and what went wrong."""
        body = webhook_body(delivery.job, self._describe)
        timestamp = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"pagemill/{__version__}",
            "webhook-id": delivery.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(self._keys, delivery.id, timestamp, body),
        }
        timeout = aiohttp.ClientTimeout(total=min(self._options.timeout_s, _LONGEST_TRY_S))
        try:
            url = self._rules.check_url(delivery.url)
            async with session.post(url, data=body, headers=headers, timeout=timeout, allow_redirects=False) as answer:
                return answer.status, "" if 200 <= answer.status < 300 else f"Answered with status {answer.status}."
        except (ForbiddenUrlError, FetchError) as error:
            return 0, str(error)
        except asyncio.TimeoutError:
            return 0, f"No answer in {timeout.total:g} s."
        except (aiohttp.ClientError, OSError) as error:
            return 0, f"No connection ({type(error).__name__})."

    def _retry_in_s(self, attempt: int) -> float | None:
        if attempt >= self._options.attempts:
            return None
        interval = INTERVALS_S[min(attempt, len(INTERVALS_S)) - 1]
        return interval * self._uniform(1 - _JITTER, 1 + _JITTER)
