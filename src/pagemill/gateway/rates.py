"""Rate smoothing: requests that come a little too fast are held back, those far too fast are answered 429."""

from __future__ import annotations

import asyncio

from pagemill.domain.errors import RateLimitedError
from pagemill.gateway.auth import CallerDependency
from pagemill.gateway.options import RateOptions
from pagemill.gateway.runtime import ServicesDependency
from pagemill.jobs.store import RateStore

_TOTAL = "total"


async def limit_rate(caller: CallerDependency, services: ServicesDependency) -> None:
    """Dependency of routes: waits until the request may go on.

    Raises:
        RateLimitedError: It would have to wait too long.
    """
    options = services.options.rate
    # One after the other: a key that is over its own rate must not use up the tokens of all.
    if options.per_key is not None:
        await _take(services.rates, f"key:{caller.key_id}", options.per_key, options.per_key_burst, options)
    if options.total is not None:
        await _take(services.rates, _TOTAL, options.total, options.total_burst, options)


async def _take(rates: RateStore, bucket: str, rate: float, burst: float, options: RateOptions) -> None:
    wait = await rates.take(bucket, rate=rate, burst=burst, patience=options.max_delay_s)
    if wait > options.max_delay_s:
        whose = "the service" if bucket == _TOTAL else "this key"
        raise RateLimitedError(
            f"More than {rate:g} requests a second for {whose}.",
            "Send them more slowly, or after the time in Retry-After.",
            retry_after=wait - options.max_delay_s,
        )
    if wait:
        await asyncio.sleep(wait)
