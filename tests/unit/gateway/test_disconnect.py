import asyncio

import pytest
from starlette.requests import ClientDisconnect

from pagemill.gateway.disconnect import unless_gone


class Connection:
    """What a server tells about a connection."""

    def __init__(self):
        self.messages = asyncio.Queue()

    async def receive(self):
        return await self.messages.get()

    def end(self):
        self.messages.put_nowait({"type": "http.disconnect"})


async def test_the_result_is_given_while_the_client_is_there():
    async def work():
        return 1

    assert await unless_gone(Connection().receive, work()) == 1


async def test_errors_of_the_work_come_through():
    async def work():
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        await unless_gone(Connection().receive, work())


async def test_the_work_ends_when_the_client_goes():
    connection = Connection()
    ended = asyncio.Event()

    async def work():
        connection.messages.put_nowait({"type": "http.request"})
        connection.end()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(ClientDisconnect):
        await unless_gone(connection.receive, work())
    assert ended.is_set()


async def test_when_it_is_given_up_itself_nothing_goes_on():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(unless_gone(Connection().receive, work()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert len(asyncio.all_tasks()) == 1
