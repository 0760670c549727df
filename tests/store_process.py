"""A process that works off jobs with a reader that reads nothing; tests start several, kill and stop them.

Arguments: URL of the database, name of the worker, seconds of a lease. With a fourth one, `hold`, it takes one piece of
work, says so, and hands its first page in when it is told to.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys

from pagemill.domain import TaskKind
from pagemill.domain.errors import LeaseLostError
from pagemill.domain.job import Task
from pagemill.jobs.sql import SqlJobStore, open_database
from pagemill.jobs.store import StoreOptions
from stores import good, pages_of


async def read(store: SqlJobStore, task: Task) -> None:
    with contextlib.suppress(LeaseLostError):
        if task.kind is TaskKind.OPEN:
            # Documents tell by their size how many pages they have.
            await store.opened(task, "pdf", pages_of(task.job.size))
        for page in task.pages:
            await asyncio.sleep(random.uniform(0, 0.003))
            await store.finish_page(task, good(page.index))


async def work(store: SqlJobStore, owner: str, lease_s: float) -> None:
    held: dict[str, asyncio.Task[None]] = {}

    async def beat() -> None:
        while True:
            await asyncio.sleep(lease_s / 5)
            for token in await store.heartbeat(owner, list(held)):
                # It may have ended while the answer was on its way.
                if token in held:
                    held[token].cancel()

    beating = asyncio.create_task(beat())
    while not beating.done():
        await store.sweep()
        for task in await store.lease(owner, 8):
            held[task.token] = asyncio.create_task(read(store, task))
        if held:
            await asyncio.wait(held.values(), return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(0.02)
        held = {token: reading for token, reading in held.items() if not reading.done()}
    await beating


async def hold(store: SqlJobStore, owner: str) -> None:
    (task,) = await store.lease(owner, 1)
    print("holds", task.pages[0].index, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    try:
        await store.finish_page(task, good(task.pages[0].index))
    except LeaseLostError:
        print("lost", flush=True)
    else:
        print("kept", flush=True)


async def main(url: str, owner: str, lease_s: float, mode: str = "work") -> None:
    database = open_database(url, StoreOptions(lease_s=lease_s, max_takeovers=1000), process_id=owner)
    await database.start()
    store = SqlJobStore(database)
    await (hold(store, owner) if mode == "hold" else work(store, owner, lease_s))
    await database.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), *sys.argv[4:]))
