"""Ports: whether one is free, and who has it."""

from __future__ import annotations

import contextlib
import errno
import socket
from pathlib import Path
from typing import Literal

from pagemill.domain.errors import ConfigurationError

_LISTENING = "0A"


def choose_port(host: str, port: int | Literal["auto"]) -> int:
    """The port to listen on.

    Args:
        host: Address to listen on.
        port: A port, or `auto` for any that is free.

    Raises:
        ConfigurationError: It is taken (the message says by whom), or the address is not of this machine.
    """
    try:
        return _bind(host, 0 if port == "auto" else port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and port != "auto":
            raise ConfigurationError(
                f"Port {port} on {host} is taken by {who_listens(port) or 'a process of another user'}.",
                "Stop that process, or give another port: --port auto takes any that is free.",
            ) from error
        if error.errno == errno.EACCES:
            raise ConfigurationError(f"Port {port} needs the rights of root.", "Use a port above 1023.") from error
        raise ConfigurationError(
            f"Cannot listen on {host}, port {port} ({error.strerror or error}).",
            "--host must be an address of this machine: 127.0.0.1, or 0.0.0.0 for all.",
        ) from error


def _bind(host: str, port: int) -> int:
    family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As the server does: connections of an earlier server that linger are no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen(1)
        return int(probe.getsockname()[1])


def who_listens(port: int, proc: Path = Path("/proc")) -> str | None:
    """The process that listens on a port: `name (pid 123)`; None where it cannot be known."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            inodes |= listening_inodes((proc / "net" / table).read_text(), port)
    if not inodes:
        return None
    for folder in sorted(proc.glob("[0-9]*"), key=lambda path: int(path.name)):
        with contextlib.suppress(OSError):
            for handle in (folder / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(handle.readlink()) in inodes:
                        name = (folder / "comm").read_text().strip()
                        return f"{name} (pid {folder.name})"
    return None


def listening_inodes(table: str, port: int) -> set[str]:
    """Targets of file handles (`socket:[123]`) that listen on a port, from the text of /proc/net/tcp.

    Columns: number, local address (hexadecimal address:port), remote address, state, queues, timer, retransmissions,
    user, timeout, inode (proc(5)).
    """
    found = set()
    for line in table.splitlines()[1:]:
        cells = line.split()
        if len(cells) > 9 and cells[3] == _LISTENING and int(cells[1].rsplit(":", 1)[1], 16) == port:
            found.add(f"socket:[{cells[9]}]")
    return found
