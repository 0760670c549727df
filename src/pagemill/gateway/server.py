"""One process of the service, from its socket to its graceful end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator

import uvicorn

from pagemill.domain.errors import ConfigurationError, PagemillError
from pagemill.gateway.app import build_app
from pagemill.gateway.options import GatewayOptions
from pagemill.gateway.protocol import guarded_protocol
from pagemill.gateway.runtime import Gateway, Services
from pagemill.telemetry import get_logger

_BACKLOG = 1024
_LAST_ANSWERS_S = 2
_KEPT_SHARE = 0.9


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Args:
        host: Address or name.
        port: Port; 0 for any free one.

    Raises:
        ConfigurationError: The address cannot be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ConfigurationError(
            f"{host}:{port} cannot be listened on ({error.strerror or error}).",
            "Choose another address or port with --host and --port, or stop what listens there.",
        ) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """The URL that a socket is reached under."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class GatewayServer:
    """Serves and works until it is told to stop.

    Args:
        gateway: Its parts.
        options: How it is set.
    """

    def __init__(self, gateway: Gateway, options: GatewayOptions) -> None:
        self._gateway = gateway
        self._options = options
        self._stop = asyncio.Event()
        self._at_once = asyncio.Event()

    def request_stop(self) -> None:
        """Ends `run` in order; called once more, at once."""
        if self._stop.is_set():
            self._at_once.set()
        self._stop.set()

    async def run(self, listener: socket.socket, on_ready: Callable[[Services], Awaitable[None]]) -> bool:
        """Serves on a socket until `request_stop`.

        Args:
            listener: The socket.
            on_ready: Called once requests are answered.

        Returns:
            Whether it ended in order.

        Raises:
            PagemillError: It cannot start.
        """
        try:
            services = await self._gateway.start()
            server = self._server(services)
            with _logs_of_others():
                serving = asyncio.create_task(server.serve(sockets=[listener]))
                try:
                    await self._serve(server, serving, services, on_ready)
                finally:
                    server.should_exit = True
                    server.force_exit = self._at_once.is_set()
                    await serving
        finally:
            await self._gateway.aclose()
        return not self._at_once.is_set()

    def _server(self, services: Services) -> _Server:
        config = uvicorn.Config(
            build_app(services),
            http=guarded_protocol(self._options.limits),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            # Longer than clients keep idle connections (httpx 5 s, aiohttp 15 s): a request on one that is being closed
            # is lost.
            timeout_keep_alive=max(1, int(_KEPT_SHARE * self._options.limits.head_s)),
            timeout_graceful_shutdown=_LAST_ANSWERS_S,
        )
        return _Server(config)

    async def _serve(
        self,
        server: _Server,
        serving: asyncio.Task[None],
        services: Services,
        on_ready: Callable[[Services], Awaitable[None]],
    ) -> None:
        await _first(server.ready.wait(), asyncio.shield(serving))
        await on_ready(services)
        await _first(self._stop.wait(), asyncio.shield(serving))
        await _first(self._gateway.stop(services), self._at_once.wait())


async def _first(*waits: Awaitable[object]) -> None:
    """Waits for the first of several things, and gives up the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


class _Server(uvicorn.Server):
    """Leaves signals to the command line, and says when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _ToStructlog(logging.Handler):
    """Passes what uvicorn says on to our log."""

    def emit(self, record: logging.LogRecord) -> None:
        log = get_logger("uvicorn")
        error = record.exc_info[1] if record.exc_info else None
        # Errors that were answered while the answer was under way have been told by the frame.
        if not isinstance(error, PagemillError):
            log.log(record.levelno, record.getMessage(), exc_info=record.exc_info)


@contextlib.contextmanager
def _logs_of_others() -> Iterator[None]:
    """What uvicorn says goes to our log; what the reader of forms says is in the answer already."""
    with contextlib.ExitStack() as stack:
        for name, handler in (("uvicorn", _ToStructlog()), ("python_multipart", logging.NullHandler())):
            logger = logging.getLogger(name)
            stack.callback(setattr, logger, "propagate", logger.propagate)
            stack.callback(logger.removeHandler, handler)
            logger.addHandler(handler)
            logger.propagate = False
        yield
